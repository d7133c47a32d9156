#include "property_tests/found_failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>

#include "backends/registry.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/known_failures.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/run.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* faulty = "faulty-causal_one_too_short.unified@cpu";

struct Listener : RunObserver {
  void judged(const CaseResult& result, const BackendTally& /*so_far*/) override {
    results.push_back(result);
    if (stop != nullptr) *stop = true;
  }
  std::vector<CaseResult> results;
  std::atomic<bool>* stop = nullptr;
};

class Found : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  RunPlan plan_for(std::string_view selector) const {
    RunPlan plan;
    plan.backends = select_backends(selector);
    plan.count = 3;
    plan.max_kv = 64;
    plan.max_requests = 2;
    plan.shrink_budget = std::chrono::milliseconds(500);
    plan.out = folder;
    return plan;
  }
  /// The same after a run of it saved its failures.
  RunPlan plan_after_a_run(std::string_view selector) const {
    RunPlan plan = plan_for(selector);
    run_cases(plan, {});
    plan.found = read(plan).all;
    EXPECT_FALSE(plan.found.empty());
    plan.max_saved = 0;
    return plan;
  }
  static FoundFailures read(const RunPlan& plan) {
    return read_found(plan.out, plan.backends, plan.rules);
  }
  void save(const std::string& name, const std::string& text) const {
    fs::create_directories(folder);
    std::ofstream(folder / name) << text;
  }

  const fs::path folder =
      fs::path(testing::TempDir()) / ("attest_found." + std::to_string(getpid()));
};

TEST_F(Found, AreOfTheirBackendAndRulesModeAlone) {
  const RunPlan plan = plan_after_a_run(faulty);
  EXPECT_THAT(read(plan_for("scalar.unified@cpu")).all, IsEmpty());
  RunPlan reported = plan;
  reported.rules = RulesMode::report;
  EXPECT_THAT(read(reported).all, IsEmpty());
}

TEST_F(Found, OfAFolderThatIsNotThereAreNone) {
  const FoundFailures found = read(plan_for("scalar.unified@cpu"));
  EXPECT_THAT(found.all, IsEmpty());
  EXPECT_THAT(found.unread, IsEmpty());
}

TEST_F(Found, ComeBeforeAnyNewCaseAndCountLikeThem) {
  RunPlan plan = plan_after_a_run(faulty);
  plan.jobs = 4;
  Listener listener;
  const RunSummary summary = run_cases(plan, {&listener});
  const auto found = static_cast<std::int64_t>(plan.found.size());
  const BackendTally& tally = summary.tallies[0];
  EXPECT_EQ(tally.found, found);
  EXPECT_EQ(tally.found_failed, found);
  EXPECT_EQ(tally.cases(), found + 3);
  EXPECT_EQ(tally.note, "");
  for (std::size_t i = 0; i < listener.results.size(); ++i) {
    EXPECT_EQ(listener.results[i].found, i < plan.found.size()) << i;
  }
  EXPECT_THAT(found_line(listener.results[0]),
              StartsWith("found     still fails by hard: " + folder.string()));
}

TEST_F(Found, AreToldBeforeAnyNewCaseWhereTheyTakeLonger) {
  StubBackend slow;
  std::atomic<int> launches{0};
  slow.after = [&](const TensorSource&, const RunOptions&, RunResult&) {
    if (launches++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  RunPlan plan = plan_for("scalar.unified@cpu");
  plan.backends = {&slow};
  plan.found = {{.file = "x.json", .name = "x", .backend = &slow, .c = verify_case()}};
  plan.jobs = 4;
  Listener listener;
  run_cases(plan, {&listener});
  ASSERT_THAT(listener.results, SizeIs(4));
  EXPECT_TRUE(listener.results[0].found);
}

/// Fixed, as if its kernel were another: the run passes, as does what it found.
TEST_F(Found, SayWhatNoLongerFails) {
  run_cases(plan_for(faulty), {});
  for (const auto& file : fs::directory_iterator(folder)) {
    Fixture fixture = load_fixture(file.path());
    fixture.backend = "scalar.unified@cpu";
    write_atomically(file.path(), to_json(fixture));
  }
  RunPlan plan = plan_for("scalar.unified@cpu");
  plan.found = read(plan).all;
  ASSERT_FALSE(plan.found.empty());
  Listener listener;
  const RunSummary summary = run_cases(plan, {&listener});
  EXPECT_EQ(exit_code(summary.tallies), 0);
  EXPECT_EQ(summary.tallies[0].found_failed, 0);
  CaseResult first = listener.results[0];
  EXPECT_THAT(found_line(first), HasSubstr("no longer fails: " + folder.string()));
  // Only what passed is fixed: a case that was not judged, or could not have failed, is kept, and
  // counts nowhere.
  for (const Verdict verdict : {Verdict::unsupported, Verdict::untrusted, Verdict::unavailable}) {
    first.judgement.verdict = verdict;
    first.judgement.reason = "page 1";
    EXPECT_THAT(found_line(first), AllOf(HasSubstr(std::string(name(verdict)) + ": page 1"),
                                         Not(HasSubstr("can be deleted"))));
    BackendTally tally;
    tally.add(first);
    EXPECT_EQ(tally.cases(), 0);
    EXPECT_EQ(tally.found_silent, 1);
  }
}

TEST_F(Found, EndTheRunWhereTheFirstFailureDoes) {
  RunPlan plan = plan_after_a_run(faulty);
  ASSERT_GT(plan.found.size(), 1U) << "one is not enough to leave some";
  plan.max_failures = 1;
  EXPECT_EQ(run_cases(plan, {}).tallies[0].cases(), 1);
  plan.max_failures = 0;
  plan.fail_fast = true;
  plan.backends.push_back(select_backends("scalar.unified@cpu").front());
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].cases(), 1);
  EXPECT_EQ(summary.tallies[1].note, "not run: the run ended before its turn");
}

TEST_F(Found, StopWhenToldAndKeepWhatTheyHave) {
  RunPlan plan = plan_after_a_run(faulty);
  ASSERT_GT(plan.found.size(), 1U) << "one is not enough to leave some";
  std::atomic<bool> stop{false};
  Listener listener;
  listener.stop = &stop;
  plan.stop = &stop;
  plan.jobs = 1;
  const RunSummary summary = run_cases(plan, {&listener});
  EXPECT_TRUE(summary.interrupted);
  EXPECT_THAT(listener.results, SizeIs(1));
  EXPECT_EQ(summary.tallies[0].cases(), 1);
  EXPECT_EQ(summary.tallies[0].note,
            "interrupted after 1 of " + std::to_string(plan.found.size() + 3) + " cases");
}

TEST_F(Found, KeepToTheBudgetAndTheTimeLimit) {
  StubBackend slow;
  std::vector<std::chrono::milliseconds> limits;
  slow.after = [&](const TensorSource&, const RunOptions& options, RunResult&) {
    limits.push_back(options.time_limit);
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
  };
  RunPlan plan = plan_for("scalar.unified@cpu");
  plan.backends = {&slow};
  plan.jobs = 1;
  plan.budget = std::chrono::milliseconds(100);
  plan.time_limit = std::chrono::milliseconds(7'000);
  plan.grace = std::chrono::minutes(10);
  for (int i = 0; i < 1000; ++i) {
    plan.found.push_back({.file = "x.json", .name = "x", .backend = &slow, .c = verify_case()});
  }
  const RunSummary summary = run_cases(plan, {});
  EXPECT_THAT(summary.tallies[0].note, StartsWith("out of time after "));
  EXPECT_LT(summary.tallies[0].cases(), 1000);
  EXPECT_THAT(limits, Contains(plan.time_limit));
}

struct TwoDevices : StubBackend {
  int device_count() const override { return 2; }
  Answer has_device(int) const override { return {}; }
};

TEST_F(Found, RunOnTheFirstDeviceThatWasAskedFor) {
  TwoDevices stub;
  std::vector<int> devices;
  stub.after = [&](const TensorSource&, const RunOptions& options, RunResult&) {
    devices.push_back(options.device);
  };
  RunPlan plan = plan_for("scalar.unified@cpu");
  plan.backends = {&stub};
  plan.found = {{.file = "x.json", .name = "x", .backend = &stub, .c = verify_case()}};
  plan.devices = {1};
  plan.jobs = 1;
  run_cases(plan, {});
  EXPECT_EQ(devices.front(), 1);
}

TEST_F(Found, ThatAreKnownDoNotCountNorCostAShrink) {
  RunPlan plan = plan_for(faulty);
  KnownFailures known(R"({"schema": 1, "known": [{"name": "n", "issue": "i",
      "expires": "2999-01-31", "backend": "faulty-causal_one_too_short"}]})",
                      "k.json");
  plan.known = &known;
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].failed(), 0);
  EXPECT_GT(summary.tallies[0].known, 0);
  EXPECT_EQ(summary.tallies[0].cases(), 3);
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_THAT(known.contradicted(), IsEmpty());
}

TEST_F(Found, NameWhatDoesNotReadAndGoOn) {
  RunPlan plan = plan_after_a_run(faulty);
  const std::size_t right = plan.found.size();
  Fixture unknown = load_fixture(plan.found[0].file);
  unknown.fault = "no_such_fault";
  unknown.faulty = unknown.fixed;
  save("a_cut.json", R"({"schema": 1, )");
  save("b_fault.json", to_json(unknown));
  save("c_other.txt", "not looked at");
  fs::create_symlink("nowhere.json", folder / "d_link.json");
  fs::create_directories(folder / "e_folder.json");
  const FoundFailures found = read(plan);
  EXPECT_THAT(found.all, SizeIs(right));
  ASSERT_THAT(found.unread, SizeIs(3));
  EXPECT_EQ(found.unread[0].file, (folder / "a_cut.json").string());
  EXPECT_THAT(found.unread[0].reason, HasSubstr("line 1"));
  EXPECT_THAT(found.unread[0].reason, Not(HasSubstr("a_cut")));
  EXPECT_THAT(found.unread[1].reason, HasSubstr("no_such_fault"));
  EXPECT_EQ(found.unread[2].reason, "a link to a file that is not there");
}

std::string refusal(const fs::path& folder) {
  try {
    require_folder(folder);
  } catch (const std::system_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Found, AreNotLookedForInWhatIsNoFolder) {
  save("file", "x");
  const std::string at = "--out " + folder.string();
  EXPECT_EQ(refusal(folder / "file"), at + "/file: Not a directory");
  EXPECT_EQ(refusal(folder / "file/below"), at + "/file/below: Not a directory");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(refusal(folder / "loop"),
              AllOf(StartsWith(at + "/loop: "), HasSubstr("Too many levels of symbolic links")));
  fs::create_symlink("nowhere", folder / "dangling");
  EXPECT_THAT(refusal(folder / "dangling"), StartsWith(at + "/dangling: a link that leads to no"));
  EXPECT_EQ(refusal(folder), "");
  EXPECT_EQ(refusal(folder / "made" / "later"), "");
}

TEST_F(Found, OfAFolderThatNobodyMayListAreAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root may list any folder";
  save("x.json", "{}");
  fs::permissions(folder, fs::perms::none);
  RunPlan plan = plan_for("scalar.unified@cpu");
  EXPECT_THROW(read(plan), std::system_error);
  fs::permissions(folder, fs::perms::owner_all);
}

}  // namespace
}  // namespace attest
