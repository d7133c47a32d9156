#include "property_tests/report/progress.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::chrono::milliseconds refresh{100};

double seconds_between(Progress::Clock::time_point a, Progress::Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

/// The start and the end of a backend's name tell it apart, so the middle goes.
std::string shortened(const std::string& text, std::size_t columns) {
  constexpr std::string_view gap = "..";
  if (text.size() <= columns) return text;
  if (columns <= gap.size()) return text.substr(0, columns);
  const std::size_t kept = columns - gap.size();
  return text.substr(0, kept - kept / 2) + std::string(gap) + text.substr(text.size() - kept / 2);
}

}  // namespace

void Progress::begin(std::string what, std::int64_t total, Clock::time_point now) {
  what_ = std::move(what);
  total_ = total;
  done_ = failed_ = 0;
  start_ = last_ = now;
  written_ = false;
}

Progress::Parts Progress::parts(Clock::time_point now) const {
  Parts parts;
  parts.what = what_;
  parts.counts = "  " + std::to_string(done_) + "/" + std::to_string(total_);
  if (failed_ > 0) parts.failed = "  " + std::to_string(failed_) + " failed";
  const double elapsed = seconds_between(start_, now);
  if (done_ == 0 || elapsed <= 0) return parts;
  const double rate = static_cast<double>(done_) / elapsed;
  parts.rate = "  " + short_number(rate) + " cases/s";
  if (done_ < total_) {
    parts.left = "  " + duration(static_cast<double>(total_ - done_) / rate) + " left";
  }
  return parts;
}

std::string Progress::line(Clock::time_point now) const {
  return line_within(std::numeric_limits<std::size_t>::max(), now);
}

std::string Progress::line_within(std::size_t columns, Clock::time_point now) const {
  Parts all = parts(now);
  const auto excess = [&] {
    const std::size_t width =
        all.what.size() + all.counts.size() + all.failed.size() + all.rate.size() + all.left.size();
    return width > columns ? width - columns : 0;
  };
  if (excess() > 0) all.rate.clear();
  if (excess() > 0) all.left.clear();
  if (excess() > 0)
    all.what = shortened(all.what, all.what.size() - std::min(all.what.size(), excess()));
  if (excess() > 0) return (all.what + all.counts + all.failed).substr(0, columns);
  const std::string failed = all.failed.empty() ? "" : console_.bad(all.failed);
  return all.what + all.counts + failed + all.rate + all.left;
}

void Progress::advance(std::int64_t done, std::int64_t failed, Clock::time_point now) {
  done_ = done;
  failed_ = failed;
  if (now - last_ < (console_.terminal() ? refresh : every_)) return;
  last_ = now;
  written_ = true;
  if (!console_.terminal()) {
    console_.print(line(now) + "\n");
    return;
  }
  // Erase first: a shorter line must not leave the end of a longer one. The last column stays free,
  // since some terminals wrap on filling it. Asked each time: windows change.
  const auto columns = static_cast<std::size_t>(std::max(1, console_.columns() - 1));
  console_.print("\r\x1b[K" + line_within(columns, now));
  live_ = true;
}

void Progress::clear() {
  if (!live_) return;
  console_.print("\r\x1b[K");
  live_ = false;
}

void Progress::end(Clock::time_point now) {
  clear();
  if (written_ && !console_.terminal()) console_.print(line(now) + "\n");
}

}  // namespace attest
