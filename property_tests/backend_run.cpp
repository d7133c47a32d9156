#include "property_tests/backend_run.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "contracts/resource_error.hpp"
#include "property_tests/case_stream.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/known_failures.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/run_devices.hpp"
#include "property_tests/save_failure.hpp"

namespace attest {
namespace {

int jobs_for(const RunPlan& plan, const Backend& backend, std::int64_t cases) {
  int jobs = plan.memory > 0 ? 1 : plan.jobs;  // the memory is for one case
  if (jobs <= 0) {
    jobs = backend.capabilities().isolate
               ? static_cast<int>(devices_of(plan, backend).size())
               : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  }
  return static_cast<int>(std::min<std::int64_t>(jobs, cases));
}

std::vector<FoundFailure> found_of(const RunPlan& plan, const Backend& backend) {
  std::vector<FoundFailure> own;
  std::copy_if(plan.found.begin(), plan.found.end(), std::back_inserter(own),
               [&](const FoundFailure& found) { return found.backend == &backend; });
  return own;
}

}  // namespace

BackendRun::BackendRun(const RunPlan& plan, const Backend& backend,
                       std::vector<RunObserver*> observers, Clock::time_point deadline)
    : plan_(plan),
      backend_(backend),
      observers_(std::move(observers)),
      deadline_(deadline),
      found_(found_of(plan, backend)),
      cases_(cases_of(plan, backend)),
      devices_(devices_of(plan, backend)),
      jobs_(jobs_for(plan, backend, planned())) {
  tally_.backend = backend.name();
  tally_.engine = split_backend_name(backend.name()).engine;
  tally_.version = backend.profile().version;
  tally_.planned = planned();
}

void BackendRun::start(const std::shared_ptr<BackendRun>& self) {
  self->begin_ = Clock::now();
  const auto jobs = static_cast<std::size_t>(self->jobs_);
  for (std::size_t i = 1; i <= jobs; ++i) {
    {
      const std::lock_guard lock(self->mutex_);
      ++self->active_;
    }
    try {
      start_thread(i, jobs, "the run (--jobs)", [self] { self->work(); }).detach();
    } catch (...) {
      self->fail(std::current_exception());
      const std::lock_guard lock(self->mutex_);
      --self->active_;
      return;
    }
  }
}

void BackendRun::work() {
  {
    InFlight in_flight("");
    try {
      while (const auto task = take()) judge_task(*task, in_flight);
    } catch (const std::logic_error& error) {
      // Ours, not a mistake of the person who called: it must not pass for a usage error.
      fail(std::make_exception_ptr(
          std::runtime_error(std::string(backend_.name()) + ": " + error.what())));
    } catch (...) {
      fail(std::current_exception());
    }
  }
  const std::lock_guard lock(mutex_);
  --active_;
  changed_.notify_all();
}

std::optional<BackendRun::Task> BackendRun::take() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (stopping() || error_ || next_ == found_.size() + cases_.size() || enough()) {
      return std::nullopt;
    }
    if (late()) {
      out_of_time_ = true;
      return std::nullopt;
    }
    if (next_ < found_.size()) return Task{.found = &found_[next_++]};
    if (found_told_ == found_.size()) return Task{.index = cases_[next_++ - found_.size()]};
    // What was found is told before any new case. Polled: a signal handler cannot notify.
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
}

bool BackendRun::enough() const {
  const std::int64_t limit = plan_.fail_fast ? 1 : plan_.max_failures;
  return limit > 0 && failures_ >= limit;
}

/// False for what other threads judged at the same time as the last failure that was asked for.
bool BackendRun::take_failure() {
  const std::lock_guard lock(mutex_);
  if (enough()) return false;
  ++failures_;
  return true;
}

void BackendRun::judge_task(const Task& task, InFlight& in_flight) {
  if (task.found == nullptr) return judge_one(task.index, in_flight);
  judge_again(*task.found, in_flight);
  const std::lock_guard lock(mutex_);
  ++found_told_;
  changed_.notify_all();
}

JudgeOptions BackendRun::options_on(int device, const RunOptions& run, InFlight& in_flight) {
  JudgeOptions options;
  options.rules = plan_.rules;
  options.run = run;
  options.run.device = device;
  options.program = plan_.program;
  options.time_limit = plan_.time_limit;
  options.isolate = plan_.isolate;
  options.reference_threads = jobs_ > 1 ? 1 : 0;
  options.before_launch = [this, &in_flight](const std::string& repro) {
    in_flight.now(repro);
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    for (RunObserver* observer : observers_) observer->launches(repro);
  };
  return options;
}

bool BackendRun::is_known(CaseResult& result) const {
  const KnownFailure* const known = plan_.known != nullptr ? plan_.known->meet(result) : nullptr;
  if (known == nullptr) return false;
  result.known = known->name;
  result.known_issue = known->issue;
  return true;
}

/// As it was saved: it is small, and has its file.
void BackendRun::judge_again(const FoundFailure& found, InFlight& in_flight) {
  const JudgeOptions options = options_on(devices_.front(), plan_.run, in_flight);
  CaseResult result{.name = found.name,
                    .seed = found.c.seed,
                    .problem = in_words(found.c),
                    .features = features_of(found.c),
                    .judgement = judge(found.c, backend_, options),
                    .fixture = found.file.string(),
                    .found = true};
  const bool counts = !is_known(result) && is_failure(result.judgement.verdict);
  if (!counts || take_failure()) deliver(result);
}

void BackendRun::judge_one(std::int64_t index, InFlight& in_flight) {
  const int device = devices_[static_cast<std::size_t>(index) % devices_.size()];
  StreamCase made = case_at(plan_, backend_, index, device);
  const Case& c = made.c;
  const JudgeOptions options = options_on(device, made.run, in_flight);
  CaseResult result{.name = made.name,
                    .index = index,
                    .seed = plan_.seed,
                    .problem = in_words(c),
                    .features = made.features,
                    .judgement = judge(c, backend_, options)};
  if (is_known(result) || !is_failure(result.judgement.verdict)) return deliver(result);
  if (!take_failure()) return;
  try {
    look_closer(result, c, options);
  } catch (...) {
    // The failure is told all the same; what could not be written ends the run after it.
    deliver(result);
    throw;
  }
  deliver(result);
}

void BackendRun::look_closer(CaseResult& result, const Case& c, const JudgeOptions& options) {
  {
    const std::lock_guard lock(mutex_);
    if (saved_ >= plan_.max_saved || stopping()) return;
    ++saved_;
  }
  // An explicit call is as small as it is meant to be.
  const Case best = c.call ? c
                           : shrink_failure(result, c, backend_, options,
                                            {.budget = plan_.shrink_budget,
                                             .max_trials = plan_.max_trials,
                                             .stop = [this] { return stopping() || late(); }});
  save_failure(result, best, backend_, plan_.rules, plan_.out,
               [&](const Case& kept) { return fails_alike(result, kept, backend_, options); });
}

void BackendRun::deliver(const CaseResult& result) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  tally_.add(result);
  for (RunObserver* observer : observers_) observer->judged(result, tally_);
}

void BackendRun::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

bool BackendRun::wait() {
  std::unique_lock lock(mutex_);
  // Polled: a signal handler may set the flag but not notify.
  while (!changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return active_ == 0; })) {
    if (late() && !stopping()) out_of_time_ = true;
    if (!stopping() && !late()) continue;
    return changed_.wait_for(lock, plan_.grace, [&] { return active_ == 0; });
  }
  return true;
}

std::exception_ptr BackendRun::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void BackendRun::judges_nothing(std::optional<Verdict> verdict, std::string why) {
  const std::lock_guard lock(mutex_);
  if (plan_.all_must_run && verdict) {
    tally_.judges_nothing(*verdict, std::move(why));
  } else {
    tally_.note = std::move(why);
  }
}

std::string BackendRun::why_not_all() const {
  const std::string done = " after " + std::to_string(tally_.cases()) + " of " +
                           std::to_string(tally_.planned) + " cases";
  if (begin_ == Clock::time_point{}) return "not run: the run ended before its turn";
  if (error_) return "ended by an error" + done;
  if (interrupted()) return "interrupted" + done;
  if (out_of_time_ && tally_.cases() > 0) return "out of time" + done;
  if (out_of_time_) {
    return "out of time" + done + ": none ended within its part of --budget" +
           (found_.empty() ? "" : "; what earlier runs saved comes first (--found skip: not)");
  }
  return "stopped at " + counted(tally_.failed(), "failure") + done;
}

BackendTally BackendRun::close() {
  const std::lock_guard lock(mutex_);
  if (closed_.exchange(true)) return tally_;
  if (begin_ != Clock::time_point{}) {
    tally_.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  const bool all = tally_.cases() + tally_.found_silent >= tally_.planned;
  if (tally_.note.empty() && !all) tally_.note = why_not_all();
  // It was to run, and nothing is known of it: neither a pass nor a mistake in the flags.
  if (out_of_time_ && tally_.cases() == 0) {
    tally_.judges_nothing(Verdict::unsupported, tally_.note);
  }
  return tally_;
}

}  // namespace attest
