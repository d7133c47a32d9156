#include "property_tests/run.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <stdexcept>

#include "property_tests/backend_run.hpp"
#include "property_tests/case_stream.hpp"
#include "property_tests/run_devices.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

/// This backend's fair part of what is left of the budget.
Clock::time_point deadline_of(const RunPlan& plan, Clock::time_point start, std::size_t done) {
  if (plan.budget.count() == 0) return Clock::time_point::max();
  const auto now = Clock::now();
  const auto left = start + plan.budget - now;
  return now + left / static_cast<std::int64_t>(plan.backends.size() - done);
}

/// Judges one backend's cases; waits for them.
void run_one(const std::shared_ptr<BackendRun>& run, const Backend& backend,
             const std::vector<RunObserver*>& observers, RunSummary& summary) {
  try {
    for (RunObserver* observer : observers) observer->begins(backend, run->planned());
    BackendRun::start(run);
    if (!run->wait()) summary.abandoned = true;
    const BackendTally tally = run->close();
    for (RunObserver* observer : observers) observer->ends(tally);
  } catch (...) {
    summary.error = std::current_exception();
  }
}

}  // namespace

std::optional<std::int64_t> bytes_from_text(std::string_view text) {
  struct Unit {
    std::string_view word;
    int shift;
  };
  static constexpr std::array units = {Unit{"GiB", 30}, Unit{"MiB", 20}, Unit{"KiB", 10},
                                       Unit{"", 0}};
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || count <= 0 || count > std::int64_t{1} << 45) return std::nullopt;
  for (const Unit& unit : units) {
    if (std::string_view(stop, static_cast<std::size_t>(end - stop)) != unit.word) continue;
    if (count > (std::int64_t{1} << 45) >> unit.shift) return std::nullopt;
    return count << unit.shift;
  }
  return std::nullopt;
}

std::string_view name(Profile profile) {
  switch (profile) {
    case Profile::generated:
      return "generated";
    case Profile::large_kv:
      return "large-kv";
    case Profile::long_context:
      return "long-context";
  }
  return "";
}

std::optional<Profile> profile_from_name(std::string_view text) {
  for (const Profile profile : {Profile::generated, Profile::large_kv, Profile::long_context}) {
    if (text == name(profile)) return profile;
  }
  return std::nullopt;
}

Shard parse_shard(std::string_view text) {
  Shard shard;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  // Digits alone: from_chars takes no blank and no plus, and a part below 1 is refused.
  const auto index = std::from_chars(begin, end, shard.index);
  bool read = index.ec == std::errc() && index.ptr != end && *index.ptr == '/';
  if (read) {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    read = count.ec == std::errc() && count.ptr == end;
  }
  if (!read || shard.index < 1 || shard.index > shard.count) {
    throw std::invalid_argument("shard '" + std::string(text) + "' is not i/n with 1 <= i <= n");
  }
  return shard;
}

void check_plan(const RunPlan& plan) {
  if (plan.backends.empty()) throw std::invalid_argument("no backend is selected");
  if (plan.count <= 0) throw std::invalid_argument("zero cases: nothing would run");
  if (plan.first < 0) throw std::invalid_argument("the first case is below 0");
  if (plan.count > std::numeric_limits<std::int64_t>::max() - plan.first) {
    throw std::invalid_argument("cases [" + std::to_string(plan.first) + ", ... + " +
                                std::to_string(plan.count) + ") do not fit into 64 bits");
  }
  if (cases_of(plan).empty()) {
    throw std::invalid_argument("shard " + std::to_string(plan.shard.index) + "/" +
                                std::to_string(plan.shard.count) + " of " +
                                std::to_string(plan.count) + " cases is empty");
  }
}

CaseRange CaseRange::before(std::int64_t end) const {
  CaseRange part = *this;
  if (!listed_.empty()) {
    std::erase_if(part.listed_, [&](std::int64_t index) { return index >= end; });
    return CaseRange(part.listed_);
  }
  const std::int64_t room = end > first_ ? (end - first_ - 1) / step_ + 1 : 0;
  part.size_ = std::min(size_, static_cast<std::size_t>(room));
  return part;
}

CaseRange cases_of(const RunPlan& plan) {
  std::int64_t skipped = plan.shard.index - 1 - plan.first % plan.shard.count;
  if (skipped < 0) skipped += plan.shard.count;
  if (skipped >= plan.count) return CaseRange(plan.first, plan.shard.count, 0);
  const std::int64_t size = (plan.count - skipped - 1) / plan.shard.count + 1;
  return {plan.first + skipped, plan.shard.count, static_cast<std::size_t>(size)};
}

RunSummary run_cases(const RunPlan& plan, const std::vector<RunObserver*>& observers) {
  check_plan(plan);
  RunSummary summary;
  const auto start = Clock::now();
  bool ended = false;
  for (const Backend* backend : plan.backends) {
    auto run = std::make_shared<BackendRun>(plan, *backend, observers,
                                            deadline_of(plan, start, summary.tallies.size()));
    const bool failed = !summary.tallies.empty() && summary.tallies.back().failed() > 0;
    ended |= summary.error != nullptr || summary.interrupted || (plan.fail_fast && failed);
    if (!ended) {
      if (const std::string none = why_none(plan, *backend); !none.empty()) {
        // What dense memory leaves out was asked for; what another shard judges is not missing.
        run->judges_nothing(plan.memory > 0 ? std::optional(Verdict::unsupported) : std::nullopt,
                            "not judged: " + none);
      } else if (const Answer available = can_run(plan, *backend)) {
        run_one(run, *backend, observers, summary);
      } else {
        run->judges_nothing(Verdict::unavailable, "unavailable: " + available.reason);
      }
    }
    if (run->error()) summary.error = run->error();
    summary.interrupted |= plan.stop != nullptr && plan.stop->load();
    summary.tallies.push_back(run->close());
  }
  return summary;
}

}  // namespace attest
