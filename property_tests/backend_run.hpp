#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/in_flight.hpp"
#include "property_tests/run.hpp"

namespace attest {

/// The cases of one backend, judged by several threads. Lives until its last thread ends, which may
/// be after run_cases gave up waiting.
class BackendRun {
 public:
  using Clock = std::chrono::steady_clock;

  BackendRun(const RunPlan& plan, const Backend& backend, std::vector<RunObserver*> observers,
             Clock::time_point deadline);

  /// Starts the threads; each holds a share of `self`.
  static void start(const std::shared_ptr<BackendRun>& self);

  /// False when threads are still at work a grace after `stop` or the deadline.
  bool wait();
  /// Does not run. `why` becomes the note; a backend that must run counts as one such verdict.
  void judges_nothing(std::optional<Verdict> verdict, std::string why);
  /// The sums. No observer hears of anything after this.
  BackendTally close();
  std::exception_ptr error() const;
  /// Cases, those that were found before among them.
  std::int64_t planned() const { return static_cast<std::int64_t>(found_.size() + cases_.size()); }

 private:
  bool interrupted() const { return plan_.stop != nullptr && plan_.stop->load(); }
  bool stopping() const { return closed_ || interrupted(); }
  std::string why_not_all() const;
  void work();
  /// A failure that was found before, or a case of the stream.
  struct Task {
    const FoundFailure* found = nullptr;
    std::int64_t index = 0;
  };
  std::optional<Task> take();
  void judge_task(const Task& task, InFlight& in_flight);
  void judge_again(const FoundFailure& found, InFlight& in_flight);
  void judge_one(std::int64_t index, InFlight& in_flight);
  JudgeOptions options_on(int device, const RunOptions& run, InFlight& in_flight);
  /// Whether a list of known failures has it; then it says so.
  bool is_known(CaseResult& result) const;
  bool take_failure();
  bool enough() const;
  bool late() const { return Clock::now() >= deadline_; }
  void look_closer(CaseResult& result, const Case& c, const JudgeOptions& options);
  void deliver(const CaseResult& result);
  void fail(std::exception_ptr error);

  const RunPlan plan_;
  const Backend& backend_;
  const std::vector<RunObserver*> observers_;
  const Clock::time_point deadline_;
  const std::vector<FoundFailure> found_;
  const CaseRange cases_;
  const std::vector<int> devices_;
  const int jobs_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;  ///< of found_, then of cases_
  std::size_t found_told_ = 0;
  int active_ = 0;
  std::int64_t failures_ = 0;  ///< taken on, though some may not be told yet
  std::int64_t saved_ = 0;
  bool out_of_time_ = false;
  std::atomic<bool> closed_{false};
  Clock::time_point begin_{};
  BackendTally tally_;
  std::exception_ptr error_;
};

}  // namespace attest
