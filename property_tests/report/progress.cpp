#include "property_tests/report/progress.hpp"

#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::chrono::milliseconds refresh{100};

double seconds_between(Progress::Clock::time_point a, Progress::Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

void Progress::begin(std::string what, std::int64_t total, Clock::time_point now) {
  what_ = std::move(what);
  total_ = total;
  done_ = failed_ = 0;
  start_ = last_ = now;
  written_ = false;
}

std::string Progress::line(Clock::time_point now) const {
  const double elapsed = seconds_between(start_, now);
  std::string text = what_ + "  " + std::to_string(done_) + "/" + std::to_string(total_);
  if (failed_ > 0) text += "  " + console_.bad(std::to_string(failed_) + " failed");
  if (done_ > 0 && elapsed > 0) {
    const double rate = static_cast<double>(done_) / elapsed;
    text += "  " + short_number(rate) + " cases/s";
    if (done_ < total_) {
      text += "  " + duration(static_cast<double>(total_ - done_) / rate) + " left";
    }
  }
  return text;
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
  // Erase first: a shorter line must not leave the end of a longer one.
  console_.print("\r\x1b[K" + line(now));
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
