#include "property_tests/run.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "backends/registry.hpp"
#include "contracts/resource_error.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/replay.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Run : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  RunPlan plan_for(std::string_view selector, std::int64_t count) const {
    RunPlan plan;
    plan.backends = select_backends(selector);
    plan.count = count;
    plan.max_kv = 64;
    plan.max_requests = 3;
    plan.shrink_budget = std::chrono::milliseconds(2'000);
    plan.max_trials = 30;
    plan.out = folder;
    return plan;
  }

  const fs::path folder =
      fs::path(testing::TempDir()) / ("attest_run_test." + std::to_string(getpid()));
};

/// Remembers what it heard.
struct Listener : RunObserver {
  void judged(const CaseResult& result, const BackendTally& /*so_far*/) override {
    results.push_back(result);
    if (throws && results.size() == 2) {
      throw std::system_error(ENOSPC, std::generic_category(), "writing x");
    }
    if (stop != nullptr && results.size() == 3) *stop = true;
  }
  void launches(const std::string& repro) override { launched.push_back(repro); }

  std::vector<CaseResult> results;
  std::vector<std::string> launched;
  bool throws = false;
  std::atomic<bool>* stop = nullptr;
};

std::vector<std::int64_t> listed(const RunPlan& plan) {
  const CaseRange range = cases_of(plan);
  std::vector<std::int64_t> cases;
  for (std::size_t i = 0; i < range.size(); ++i) cases.push_back(range[i]);
  return cases;
}

TEST(Shards, ShareTheCasesWithoutOverlapOrGap) {
  RunPlan plan;
  plan.first = 5;
  plan.count = 23;
  const std::vector<std::int64_t> all = listed(plan);
  for (const std::int64_t shards : {1, 2, 3, 7, 40}) {
    std::multiset<std::int64_t> seen;
    for (std::int64_t i = 1; i <= shards; ++i) {
      plan.shard = {i, shards};
      for (const std::int64_t c : listed(plan)) seen.insert(c);
    }
    EXPECT_EQ(std::vector<std::int64_t>(seen.begin(), seen.end()), all) << shards;
  }
}

TEST(Shards, OfTheLargestRunsStayWithin64Bits) {
  RunPlan plan;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  plan.first = most / 2;
  plan.count = most / 2;
  plan.shard = {most, most};
  EXPECT_TRUE(cases_of(plan).empty());
  plan.shard = {3, 1000};
  const CaseRange range = cases_of(plan);
  EXPECT_TRUE(plan.shard.has(range[0]));
  EXPECT_TRUE(plan.shard.has(range[range.size() - 1]));
  EXPECT_LE(plan.first, range[0]);
  EXPECT_LT(range[range.size() - 1], plan.first + plan.count);
  EXPECT_GE(range[range.size() - 1], plan.first + plan.count - 1000);
  plan.first = most;
  EXPECT_THROW(check_plan(plan), std::invalid_argument);
}

TEST(Shards, AreWrittenAsPartOfCount) {
  EXPECT_EQ(parse_shard("2/4").index, 2);
  EXPECT_EQ(parse_shard("2/4").count, 4);
  for (const char* bad : {"", "2", "0/4", "5/4", "2/", "/4", "2/4x", "a/b", "1/0", "-1/4", " 2/4",
                          "2/ 4", "+2/4", "2/+4", "2 /4"}) {
    EXPECT_THROW(parse_shard(bad), std::invalid_argument) << bad;
  }
}

TEST_F(Run, OfAnHonestBackendPassesAndSavesNothing) {
  Listener listener;
  const RunSummary summary = run_cases(plan_for("scalar.unified@cpu", 12), {&listener});
  ASSERT_EQ(summary.tallies.size(), 1U);
  EXPECT_EQ(summary.tallies[0].cases(), 12);
  EXPECT_EQ(summary.tallies[0].failed(), 0);
  EXPECT_EQ(listener.results.size(), 12U);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Run, NamesTheSeedAndTheCaseInItsReproductionLine) {
  Listener listener;
  RunPlan plan = plan_for("scalar.unified@cpu", 1);
  plan.seed = 9;
  plan.first = 4;
  run_cases(plan, {&listener});
  ASSERT_EQ(listener.launched.size(), 1U);
  EXPECT_NE(listener.launched[0].find(
                "run --backend scalar.unified@cpu --seed 9 --case 4 --max-kv 64 --max-requests 3"),
            std::string::npos)
      << listener.launched[0];
}

TEST_F(Run, LeavesABackendAtExactlyItsLastFailureWithAnyNumberOfJobs) {
  Listener listener;
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 60);
  plan.jobs = 6;
  plan.max_failures = 2;
  plan.shrink_budget = std::chrono::milliseconds(0);
  const RunSummary summary = run_cases(plan, {&listener});
  EXPECT_EQ(summary.tallies[0].failed(), 2);
  EXPECT_LT(summary.tallies[0].cases(), 60);
  EXPECT_NE(summary.tallies[0].note.find("stopped at 2 failures"), std::string::npos)
      << summary.tallies[0].note;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 2) << "fixtures";
}

TEST_F(Run, GoesOnWithinItsBudgetThoughItHasThousandsOfMillionsOfCases) {
  RunPlan plan = plan_for("scalar.unified@cpu", 2'000'000'000);
  plan.budget = std::chrono::milliseconds(200);
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].planned, 2'000'000'000);
  EXPECT_NE(summary.tallies[0].note.find("out of time"), std::string::npos);
}

/// `attest run --profile large-kv` takes every backend: one without cells is told so.
TEST_F(Run, LeavesOutBackendsThatALargeKvRunHasNoCellsOf) {
  for (const char* const name :
       {"scalar.batch_prefill", "scalar.paged_ragged", "scalar.legacy_extend", "scalar.vllm_cpu"}) {
    RunPlan plan;
    plan.profile = Profile::large_kv;
    plan.backends = select_backends(name);
    ASSERT_EQ(plan.backends.size(), 1U) << name;
    const RunSummary summary = run_cases(plan, {});
    EXPECT_EQ(summary.error, nullptr) << name;
    EXPECT_NE(summary.tallies[0].note.find("no case"), std::string::npos)
        << name << ": " << summary.tallies[0].note;
  }
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST_F(Run, LeavesACaseThatOutlivesTheBudget) {
  static std::atomic<bool> released{false};
  static StubBackend slow;  // its thread may end after the test
  slow.after = [](const TensorSource&, const RunOptions&, RunResult&) {
    while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  RunPlan plan = plan_for("scalar.unified@cpu", 1);
  plan.backends = {&slow};
  plan.budget = std::chrono::milliseconds(100);
  plan.grace = std::chrono::milliseconds(50);
  const std::ptrdiff_t before = threads_of_this_process();
  const RunSummary summary = run_cases(plan, {});
  released = true;
  EXPECT_TRUE(summary.abandoned);
  EXPECT_NE(summary.tallies[0].note.find("out of time after 0 of 1"), std::string::npos)
      << summary.tallies[0].note;
  // The case is left to itself, and must not meet the end of the process.
  while (threads_of_this_process() > before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST_F(Run, NamesTheThreadThatCouldNotBeStarted) {
  pthread_attr_t usual;
  pthread_attr_t vast;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&vast), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&vast, std::size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&vast), 0);
  RunPlan plan = plan_for("scalar.unified@cpu", 3);
  plan.jobs = 3;
  const RunSummary summary = run_cases(plan, {});
  ::pthread_setattr_default_np(&usual);
  ASSERT_TRUE(summary.error);
  try {
    std::rethrow_exception(summary.error);
  } catch (const ResourceError& error) {
    EXPECT_EQ(error.place(), "starting thread 1 of 3 of the run (--jobs)");
  }
}

TEST_F(Run, SavesTheSameCaseOfAnotherFaultOrRulesModeBesideIt) {
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 20);
  plan.jobs = 1;
  plan.max_failures = 1;
  plan.shrink_budget = std::chrono::milliseconds(0);
  run_cases(plan, {});
  plan.rules = RulesMode::report;
  run_cases(plan, {});
  plan.rules = RulesMode::off;
  run_cases(plan, {});
  plan.fault = "seqused_k_short_by_one";
  run_cases(plan, {});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 4);
}

TEST_F(Run, GivesTheSameVerdictsWithAnyNumberOfJobs) {
  std::map<std::int64_t, Verdict> verdicts[2];
  for (const int jobs : {1, 4}) {
    Listener listener;
    RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 12);
    plan.jobs = jobs;
    plan.max_saved = 0;
    run_cases(plan, {&listener});
    for (const CaseResult& result : listener.results) {
      verdicts[jobs == 1 ? 0 : 1][result.index] = result.judgement.verdict;
    }
  }
  EXPECT_EQ(verdicts[0], verdicts[1]);
  EXPECT_EQ(verdicts[0].size(), 12U);
}

TEST_F(Run, ShrinksAndSavesAFailureThatReplaysAsItPromises) {
  Listener listener;
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 6);
  plan.max_saved = 1;
  const RunSummary summary = run_cases(plan, {&listener});
  ASSERT_GT(summary.tallies[0].failed(), 0);
  const auto saved = std::find_if(listener.results.begin(), listener.results.end(),
                                  [](const CaseResult& r) { return !r.fixture.empty(); });
  ASSERT_NE(saved, listener.results.end());
  std::vector<CaseResult> replayed;
  replay_file(saved->fixture, {}, [&](const CaseResult& r) { replayed.push_back(r); });
  ASSERT_FALSE(replayed.empty());
  for (const CaseResult& result : replayed) EXPECT_EQ(result.unexpected, "") << result.name;
  EXPECT_EQ(replay_exit_code(replayed), 0);
}

TEST_F(Run, LeavesABackendAfterItsFailures) {
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 50);
  plan.max_failures = 2;
  plan.jobs = 1;
  plan.max_saved = 0;
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].failed(), 2);
  EXPECT_LT(summary.tallies[0].cases(), 50);
  EXPECT_EQ(summary.tallies[0].note.rfind("stopped at 2 failures", 0), 0U)
      << summary.tallies[0].note;
}

TEST_F(Run, FailFastLeavesTheOtherBackendsUnrunAndSaysSo) {
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu,scalar.unified@cpu", 20);
  plan.fail_fast = true;
  plan.max_saved = 0;
  const bool faulty_first = plan.backends[0]->name() != "scalar.unified@cpu";
  if (!faulty_first) std::swap(plan.backends[0], plan.backends[1]);
  const RunSummary summary = run_cases(plan, {});
  ASSERT_EQ(summary.tallies.size(), 2U);
  EXPECT_EQ(summary.tallies[1].cases(), 0);
  EXPECT_EQ(summary.tallies[1].note, "not run: the run ended before its turn");
}

TEST_F(Run, StopsWhenToldAndKeepsWhatItHas) {
  std::atomic<bool> stop{false};
  Listener listener;
  listener.stop = &stop;
  RunPlan plan = plan_for("scalar.unified@cpu", 500);
  plan.stop = &stop;
  plan.jobs = 1;
  const RunSummary summary = run_cases(plan, {&listener});
  EXPECT_TRUE(summary.interrupted);
  EXPECT_FALSE(summary.abandoned);
  EXPECT_EQ(summary.tallies[0].cases(), static_cast<std::int64_t>(listener.results.size()));
  EXPECT_LT(summary.tallies[0].cases(), 10);
  EXPECT_EQ(summary.tallies[0].note.rfind("interrupted after", 0), 0U);
}

TEST_F(Run, EndsWithTheErrorOfAnObserverAndTheTallySoFar) {
  Listener listener;
  listener.throws = true;
  RunPlan plan = plan_for("scalar.unified@cpu", 100);
  plan.jobs = 1;
  const RunSummary summary = run_cases(plan, {&listener});
  ASSERT_TRUE(summary.error);
  EXPECT_THROW(std::rethrow_exception(summary.error), std::system_error);
  EXPECT_EQ(summary.tallies[0].cases(), 2);
  EXPECT_EQ(summary.tallies[0].note, "ended by an error after 2 of 100 cases");
}

TEST_F(Run, ReportsAFailureEvenWhenItsFixtureCannotBeWritten) {
  Listener listener;
  RunPlan plan = plan_for("faulty-first_key_ignored.unified@cpu", 10);
  plan.out = "/proc/nowhere";
  plan.shrink_budget = std::chrono::milliseconds(0);
  const RunSummary summary = run_cases(plan, {&listener});
  ASSERT_TRUE(summary.error);
  EXPECT_THROW(std::rethrow_exception(summary.error), std::system_error);
  EXPECT_TRUE(std::any_of(listener.results.begin(), listener.results.end(),
                          [](const auto& r) { return r.judgement.verdict == Verdict::mismatch; }));
}

TEST_F(Run, KeepsToItsBudget) {
  RunPlan plan = plan_for("scalar.unified@cpu", 1'000'000);
  plan.budget = std::chrono::milliseconds(200);
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].note.rfind("out of time after", 0), 0U) << summary.tallies[0].note;
}

TEST_F(Run, RefusesToRunNothing) {
  RunPlan plan = plan_for("scalar.unified@cpu", 0);
  EXPECT_THROW(run_cases(plan, {}), std::invalid_argument);
  plan.count = 2;
  plan.shard = {4, 4};
  EXPECT_THROW(run_cases(plan, {}), std::invalid_argument);
  plan.shard = {};
  plan.backends.clear();
  EXPECT_THROW(run_cases(plan, {}), std::invalid_argument);
}

}  // namespace
}  // namespace attest
