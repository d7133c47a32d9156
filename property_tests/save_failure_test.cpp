#include "property_tests/save_failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "backends/registry.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/run.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

struct Listener : RunObserver {
  void judged(const CaseResult& result, const BackendTally& /*so_far*/) override {
    results.push_back(result);
  }
  std::vector<CaseResult> results;
};

class SavedFailures : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  RunPlan plan_for(std::string_view selector) const {
    RunPlan plan;
    plan.backends = select_backends(selector);
    plan.count = 3;
    plan.max_kv = 64;
    plan.max_requests = 2;
    plan.out = folder;
    return plan;
  }

  const fs::path folder =
      fs::path(testing::TempDir()) / ("attest_saved." + std::to_string(getpid()));
};

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A folder may hold what somebody else put there.
TEST_F(SavedFailures, AreNotWrittenThroughALink) {
  RunPlan plan = plan_for("faulty-causal_one_too_short.unified@cpu");
  plan.max_saved = 1;
  plan.jobs = 1;
  plan.shrink_budget = std::chrono::milliseconds(0);
  run_cases(plan, {});
  ASSERT_THAT(files_of(folder), SizeIs(1));
  const fs::path saved = files_of(folder)[0];
  const fs::path precious = folder / "precious.txt";
  fs::remove(saved);
  std::ofstream(precious) << "keep";
  fs::create_symlink(precious, saved);
  run_cases(plan, {});
  EXPECT_FALSE(fs::is_symlink(saved));
  EXPECT_NO_THROW(load_fixture(saved));
  std::ifstream kept(precious);
  std::string text;
  kept >> text;
  EXPECT_EQ(text, "keep");
}

TEST_F(SavedFailures, AreNotReplacedByLargerOnes) {
  RunPlan plan = plan_for("faulty-causal_one_too_short.unified@cpu");
  plan.max_saved = 1;
  plan.jobs = 1;
  plan.shrink_budget = std::chrono::seconds(20);
  run_cases(plan, {});
  ASSERT_THAT(files_of(folder), SizeIs(1));
  const Fixture small = load_fixture(files_of(folder)[0]);
  plan.shrink_budget = std::chrono::milliseconds(0);
  Listener listener;
  run_cases(plan, {&listener});
  ASSERT_THAT(files_of(folder), SizeIs(1));
  EXPECT_EQ(load_fixture(files_of(folder)[0]), small);
  const auto failed = std::ranges::find_if(listener.results,
                                           [](const CaseResult& r) { return !r.fixture.empty(); });
  ASSERT_NE(failed, listener.results.end());
  EXPECT_EQ(failed->fixture, files_of(folder)[0].string());
  EXPECT_THAT(failed->shrunk, StartsWith("by an earlier run: "));
}

/// The smaller case passes by now: the larger one is what fails, and both stay.
TEST_F(SavedFailures, ThatNoLongerFailDoNotStandForLargerOnes) {
  StubBackend stub;
  stub.after = [](const TensorSource&, const RunOptions&, RunResult& result) {
    if (result.out.rows > 1) result.out.values[0] += 1;
  };
  RunPlan plan = plan_for("scalar.unified@cpu");
  plan.backends = {&stub};
  plan.count = 20;
  plan.max_saved = 1;
  plan.jobs = 1;
  plan.shrink_budget = std::chrono::milliseconds(0);
  run_cases(plan, {});
  ASSERT_THAT(files_of(folder), SizeIs(1));
  const fs::path first = files_of(folder)[0];
  Fixture passes = load_fixture(first);
  passes.trace[0] = verify_case().problem;
  passes.trace[0].requests = {{.sequence = 0, .committed = 1, .new_tokens = 1}};
  write_atomically(first, to_json(passes));
  const auto written = [&] {
    Listener listener;
    run_cases(plan, {&listener});
    const auto failed = std::ranges::find_if(
        listener.results, [](const CaseResult& r) { return !r.fixture.empty(); });
    return failed == listener.results.end() ? fs::path() : fs::path(failed->fixture);
  };
  const fs::path second = written();
  EXPECT_NE(second, first);
  EXPECT_THAT(second.string(), HasSubstr("-2.json"));
  EXPECT_EQ(load_fixture(first).trace, passes.trace);
  // The same case again makes no third one.
  EXPECT_EQ(written(), second);
  EXPECT_THAT(files_of(folder), SizeIs(2));
}

}  // namespace
}  // namespace attest
