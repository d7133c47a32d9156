#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/found_failures.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/result.hpp"
#include "property_tests/report/tally.hpp"

namespace attest {

/// Part `index` (from 1) of `count`: case i of the stream belongs to part i % count + 1, so every
/// shard count sees the same set.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;
  bool has(std::int64_t i) const { return i % count == index - 1; }
};
/// "2/4". \throws std::invalid_argument
Shard parse_shard(std::string_view text);

/// "20GiB", "800MiB", "4096".
std::optional<std::int64_t> bytes_from_text(std::string_view text);

/// Where the cases of a run come from.
enum class Profile {
  generated,
  large_kv,      ///< the lattice of large_kv.hpp
  long_context,  ///< long_context.hpp
};
std::string_view name(Profile profile);
std::optional<Profile> profile_from_name(std::string_view text);

class KnownFailures;  // known_failures.hpp

/// What to run.
struct RunPlan {
  std::vector<const Backend*> backends;
  Profile profile = Profile::generated;
  /// Bytes that dense K and V of a case may take together; cases that need more are left out. 0:
  /// pools are sparse.
  std::int64_t memory = 0;
  std::uint64_t seed = 1;
  std::int64_t first = 0;  ///< index of the first case
  std::int64_t count = 200;
  Shard shard;
  RulesMode rules = RulesMode::enforce;
  std::string fault;  ///< metadata fault put into every call; empty = none
  RunOptions run;
  /// Case i runs on the (i mod count)-th of them; empty: on run.device.
  std::vector<int> devices;
  bool all_devices = false;  ///< on all that the backend has, in the same way
  std::int64_t max_kv = 512;
  std::int64_t max_requests = 6;
  std::optional<Recipe> recipe;  ///< data of every case; absent = drawn, with the power to fail
  std::chrono::milliseconds time_limit{60'000};  ///< of one launch in a worker
  bool isolate = false;                          ///< every launch is in one
  std::chrono::milliseconds budget{0};           ///< of the whole run; 0 = none
  bool fail_fast = false;                        ///< the first failure ends the whole run
  /// An unavailable backend counts as a verdict: what is named must run. Off for the default
  /// selection, where it is only listed.
  bool all_must_run = true;
  std::int64_t max_failures = 0;  ///< per backend, exactly; then the next one. 0 = run to the end
  std::int64_t max_saved = 5;     ///< failures per backend that are shrunk and saved
  std::chrono::milliseconds shrink_budget{10'000};  ///< per failure; 0 = do not shrink
  int max_trials = 200;                             ///< of one shrink
  std::filesystem::path out = "fixtures/found";
  /// Judged before any new case of their backends, within the same limits.
  std::vector<FoundFailure> found;
  KnownFailures* known = nullptr;  ///< what it has is told in a line and fails nothing; may be null
  std::string program = "attest";  ///< of repro lines
  int jobs = 0;  ///< cases at a time; 0 = one per core, one for backends that run isolated
  /// Set from a signal handler to end the run; may be null.
  const std::atomic<bool>* stop = nullptr;
  /// How long cases in flight may still take after `stop` and after the budget.
  std::chrono::milliseconds grace{2'000};
};

/// Hears of a run as it happens; never from two threads at once. What it throws ends the run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void begins(const Backend& /*backend*/, std::int64_t /*cases*/) {}
  virtual void launches(const std::string& /*repro*/) {}
  virtual void judged(const CaseResult& /*result*/, const BackendTally& /*so_far*/) {}
  virtual void ends(const BackendTally& /*tally*/) {}
};

struct RunSummary {
  std::vector<BackendTally> tallies;  ///< of every backend of the plan, in its order
  bool interrupted = false;
  bool abandoned = false;    ///< a case was still running when a grace ended: leave the process at
                             ///< once when all is told, its thread lives
  std::exception_ptr error;  ///< a broken machine or disk that ended the run
};

/// Judges what was found before and every case of the plan on every backend. A failing case is
/// shrunk (same verdict, same oracle or rule), diagnosed, saved as a fixture under plan.out, and
/// the run goes on.
/// \throws std::invalid_argument when the plan selects nothing.
RunSummary run_cases(const RunPlan& plan, const std::vector<RunObserver*>& observers);

/// \throws std::invalid_argument when the plan selects nothing.
void check_plan(const RunPlan& plan);

/// Indices of cases, ascending: evenly spaced ones, since a run of two thousand million must hold
/// no list of them, or a list.
class CaseRange {
 public:
  CaseRange(std::int64_t first, std::int64_t step, std::size_t size)
      : first_(first), step_(step), size_(size) {}
  explicit CaseRange(std::vector<std::int64_t> listed)
      : size_(listed.size()), listed_(std::move(listed)) {}

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t operator[](std::size_t i) const {
    return listed_.empty() ? first_ + static_cast<std::int64_t>(i) * step_ : listed_[i];
  }
  /// Those below `end`.
  CaseRange before(std::int64_t end) const;

 private:
  std::int64_t first_ = 0;
  std::int64_t step_ = 1;
  std::size_t size_ = 0;
  std::vector<std::int64_t> listed_;
};

/// Indices of the plan. \pre first and count are not negative and their sum is a std::int64_t
CaseRange cases_of(const RunPlan& plan);

}  // namespace attest
