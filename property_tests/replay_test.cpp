#include "property_tests/replay.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "fixtures/fixture.hpp"
#include "property_tests/replay_text.hpp"
#include "property_tests/report/atomic_file.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A verify step whose framework forgot the draft tokens: seen from both sides.
Fixture short_prefix() {
  Problem problem;
  problem.model.num_q_heads = 4;
  problem.model.num_kv_heads = 2;
  problem.mode = Mode::target_verify;
  problem.pool.num_pages = 16;
  problem.num_draft_tokens = 3;
  problem.requests = {{.sequence = 0, .committed = 30, .new_tokens = 3},
                      {.sequence = 1, .committed = 41, .new_tokens = 3}};
  Fixture fixture;
  fixture.name = "short_prefix";
  fixture.story = "the draft tokens are not counted";
  fixture.source = "attest's own test";
  fixture.trace = {problem};
  fixture.signature = "extend";
  fixture.fault = "prefix_short_by_draft_count";
  fixture.recipe = Recipe::recall;
  fixture.faulty = Expectation{Verdict::rejected, Verdict::mismatch, {}};
  fixture.fixed = {Verdict::pass, Verdict::pass, {}};
  return fixture;
}

class Replay : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  fs::path save(const Fixture& fixture) const {
    const fs::path path = folder / (fixture.name + ".json");
    fs::create_directories(folder);
    write_atomically(path, to_json(fixture));
    return path;
  }
  static std::vector<CaseResult> replay(const fs::path& path, const ReplayPlan& plan = {}) {
    std::vector<CaseResult> results;
    replay_file(path, plan, [&](const CaseResult& result) { results.push_back(result); });
    return results;
  }

  const fs::path folder =
      fs::path(testing::TempDir()) / ("attest_replay_test." + std::to_string(getpid()));
};

TEST_F(Replay, JudgesBothSidesInBothRulesModes) {
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  const std::vector<CaseResult> results = replay(save(short_prefix()), plan);
  ASSERT_EQ(results.size(), 4U);
  const Verdict verdicts[] = {Verdict::rejected, Verdict::mismatch, Verdict::pass, Verdict::pass};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(results[i].judgement.verdict, verdicts[i])
        << results[i].name << ": " << results[i].judgement.reason;
    EXPECT_EQ(results[i].unexpected, "");
  }
  EXPECT_EQ(replay_exit_code(results), 0);
}

TEST_F(Replay, RefusesAFaultThatItCannotPutIn) {
  Fixture fixture = short_prefix();
  fixture.fault = "no_such_fault";
  EXPECT_THROW(replay(save(fixture)), FixtureError);
  fixture.fault = "lengths_of_the_captured_step";  // needs the step before
  EXPECT_THROW(replay(save(fixture)), FixtureError);
  fixture.trace.push_back(fixture.trace.front());  // changes nothing: both steps are alike
  EXPECT_THROW(replay(save(fixture)), FixtureError);
}

TEST_F(Replay, ReadsAsALinePerSide) {
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  const std::string text = replay_text(replay(save(short_prefix()), plan), Console::silent());
  EXPECT_EQ(text.rfind("short_prefix: the draft tokens are not counted\n"
                       "  with the fault     enforced: rejected by ",
                       0),
            0U)
      << text;
  EXPECT_NE(text.find("\n  without the fault  enforced: pass"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  because            seq_lens[0] is 30, expected 33 = 30 committed + 3 new"
                      "\n                     "),
            std::string::npos)
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
}

TEST_F(Replay, KeepsToTheModeItIsGiven) {
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  plan.rules = RulesMode::report;
  const std::vector<CaseResult> results = replay(save(short_prefix()), plan);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].judgement.verdict, Verdict::mismatch);
}

TEST_F(Replay, SaysWhatWasExpectedOfASurprise) {
  Fixture fixture = short_prefix();
  fixture.fixed.reported = Verdict::mismatch;
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  const std::vector<CaseResult> results = replay(save(fixture), plan);
  EXPECT_EQ(results.back().unexpected, "expected mismatch, got pass");
  EXPECT_EQ(replay_exit_code(results), exit_expectation);
}

TEST_F(Replay, DoesNotTakeTheRightVerdictForAWrongReason) {
  Fixture fixture = short_prefix();
  fixture.faulty->rules = {"heads.divide_evenly_or_so"};
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  try {
    const std::vector<CaseResult> results = replay(save(fixture), plan);
    EXPECT_NE(results[0].unexpected.find("which did not fire"), std::string::npos);
    EXPECT_EQ(replay_exit_code(results), exit_expectation);
  } catch (const FixtureError&) {
    // A reader that knows every rule id may refuse the file before any judgement.
  }
}

TEST_F(Replay, SaysOnceWhyABackendCannotRunHere) {
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  std::vector<CaseResult> results = replay(save(short_prefix()), plan);
  for (CaseResult& result : results) {
    result.judgement.backend = "amx.extend@native";
    result.judgement.verdict = Verdict::unavailable;
    result.judgement.reason = "no tiles";
  }
  const std::string text = replay_text(results, Console::silent());
  const std::string said = "\n  unavailable        amx.extend@native: no tiles\n";
  const std::size_t at = text.find(said);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(said, at + 1), std::string::npos) << text;
}

TEST_F(Replay, OfAnotherSignatureSaysNothingAboutTheBackend) {
  ReplayPlan plan;
  plan.backend = "scalar.unified@cpu";
  const std::vector<CaseResult> results = replay(save(short_prefix()), plan);
  ASSERT_EQ(results.size(), 4U);
  for (const CaseResult& result : results) {
    EXPECT_EQ(result.judgement.verdict, Verdict::unsupported);
    EXPECT_EQ(result.applies, Applies::other_signature);
    EXPECT_EQ(result.unexpected, "");
  }
  EXPECT_EQ(results[3].name, "short_prefix, without the fault, rules reported");
  EXPECT_EQ(replay_exit_code(results), exit_expectation) << "nothing was judged";
  CaseResult fine;
  std::vector<CaseResult> some = results;
  some.push_back(fine);
  EXPECT_EQ(replay_exit_code(some), 0);
  plan.rules = RulesMode::report;
  EXPECT_EQ(replay(save(short_prefix()), plan).size(), 2U);
}

/// What a kernel's own fault does, another kernel need not do.
TEST_F(Replay, JudgesTheFaultOfAnotherKernelOnThatAlone) {
  Fixture fixture = short_prefix();
  fixture.fault.clear();
  fixture.backend = "faulty-causal_one_too_long.extend@cpu";
  fixture.faulty = Expectation{Verdict::mismatch, Verdict::mismatch, {}};
  for (const char* const backend : {"", "faulty-causal_one_too_long.extend@cpu"}) {
    ReplayPlan plan;
    plan.backend = backend;
    EXPECT_EQ(replay(save(fixture), plan).front().judgement.verdict, Verdict::mismatch) << backend;
  }
  ReplayPlan plan;
  plan.backend = "scalar.extend@cpu";
  const std::vector<CaseResult> results = replay(save(fixture), plan);
  EXPECT_EQ(results.front().applies, Applies::fault_of_another_kernel);
  EXPECT_EQ(results.back().judgement.verdict, Verdict::pass);
  EXPECT_EQ(replay_exit_code(results), 0);
}

TEST_F(Replay, CountsTheFixturesThatWereNotJudgedByReason) {
  std::vector<CaseResult> results(5);
  results[0].applies = Applies::other_signature;
  results[0].judgement.reason = "no selected backend has the signature extend";
  results[0].fixture = "a.json";
  results[1] = results[0];
  results[2] = results[0];
  results[2].fixture = "b.json";
  results[3].applies = Applies::unsupported;
  results[3].judgement.reason = "no windows";
  results[3].fixture = "c.json";
  EXPECT_EQ(not_judged_text(results),
            "not judged: 2 fixtures of extend, which is not the backend's signature\n"
            "not judged: 1 fixture with a side that the backend does not support (the first: no "
            "windows)\n");
  EXPECT_EQ(not_judged_text(std::span(results).last(1)), "");
}

TEST_F(Replay, UnavailableAloneIsItsOwnExitCode) {
  CaseResult absent;
  absent.judgement.verdict = Verdict::unavailable;
  absent.unexpected = "expected pass, got unavailable";
  EXPECT_EQ(replay_exit_code({absent}), 4);
  CaseResult wrong = absent;
  wrong.judgement.verdict = Verdict::mismatch;
  EXPECT_EQ(replay_exit_code({absent, wrong}), exit_expectation);
}

TEST_F(Replay, TakesAFolderForEveryFixtureBelowIt) {
  Fixture other = short_prefix();
  other.name = "a_second";
  save(other);
  save(short_prefix());
  const std::vector<fs::path> files = fixture_files({folder});
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].filename(), "a_second.json");
}

TEST_F(Replay, ListsLinksThatLeadNowhereSoThatReadingThemSaysWhy) {
  save(short_prefix());
  fs::create_symlink("a_loop.json", folder / "a_loop.json");
  fs::create_symlink("absent", folder / "b_dangling.json");
  const std::vector<fs::path> files = fixture_files({folder});
  ASSERT_EQ(files.size(), 3U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_THROW(replay_file(files[i], {}, [](const CaseResult&) {}), FixtureError) << files[i];
  }
}

TEST_F(Replay, NamesTheProblemAndTheLineWhereNoBackendFits) {
  ReplayPlan plan;
  plan.backend = "scalar.unified@cpu";
  plan.program = "bin/attest";
  const fs::path path = save(short_prefix());
  const std::vector<CaseResult> results = replay(path, plan);
  EXPECT_NE(results[0].problem.find("target_verify"), std::string::npos) << results[0].problem;
  EXPECT_EQ(results[0].judgement.repro,
            "bin/attest replay " + path.string() + " --backend scalar.unified@cpu");
}

TEST_F(Replay, NamesTheFoldersThatCannotBeListed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may list any folder";
  save(short_prefix());
  fs::create_directories(folder / "closed");
  fs::permissions(folder / "closed", fs::perms::none);
  std::vector<UnreadInput> unread;
  const auto files =
      fixture_files({folder}, [&](const UnreadInput& one) { unread.push_back(one); });
  fs::permissions(folder / "closed", fs::perms::owner_all);
  EXPECT_EQ(files.size(), 1U);
  ASSERT_EQ(unread.size(), 1U);
  EXPECT_EQ(unread[0].file, (folder / "closed").string());
  EXPECT_EQ(unread[0].reason, "cannot be listed: Permission denied");
}

TEST_F(Replay, RefusesAFolderWithoutFixtures) {
  fs::create_directories(folder);
  EXPECT_THROW(fixture_files({folder}), FixtureError);
}

}  // namespace
}  // namespace attest
