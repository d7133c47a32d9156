#include "property_tests/known_failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "backends/registry.hpp"
#include "fixtures/fixture.hpp"
#include "fixtures/fixture_error.hpp"
#include "property_tests/found_failures.hpp"
#include "property_tests/report/atomic_file.hpp"

namespace attest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string entry(std::string_view more, std::string_view name = "n") {
  return "{\"name\": \"" + std::string(name) +
         "\", \"issue\": \"https://example.org/1\", \"expires\": \"2027-01-31\"" +
         std::string(more) + "}";
}

std::string list(const std::string& entries) {
  return R"({"schema": 1, "known": [)" + entries + "]}";
}

CaseResult result_of(Verdict verdict, std::string oracle = "hard") {
  CaseResult result;
  result.name = "case 3";
  result.problem = "decode 1 req 4:4 D80 window 17, recipe normal";
  result.features = {"decode", "window"};
  result.judgement.backend = "scalar.unified@cpu";
  result.judgement.verdict = verdict;
  result.judgement.oracles = {{.oracle = std::move(oracle), .passed = verdict == Verdict::pass}};
  return result;
}

TEST(KnownFailures, CoverFailuresThatFitInEveryWordThatIsGiven) {
  KnownFailures known(list(entry(R"(, "backend": "scalar", "problem": "window 17",
      "features": ["window", "decode"], "kind": "hard")")),
                      "k.json");
  const KnownFailure* const met = known.meet(result_of(Verdict::mismatch));
  ASSERT_NE(met, nullptr);
  EXPECT_EQ(met->name, "n");
  EXPECT_EQ(known.meet(result_of(Verdict::mismatch, "lse")), nullptr);
  CaseResult other = result_of(Verdict::mismatch);
  other.judgement.backend = "scalars.unified@cpu";
  EXPECT_EQ(known.meet(other), nullptr);
  other = result_of(Verdict::mismatch);
  other.problem = "decode 1 req 4:4 D80 window 18";
  EXPECT_EQ(known.meet(other), nullptr);
  other = result_of(Verdict::mismatch);
  other.features = {"window"};
  EXPECT_EQ(known.meet(other), nullptr);
}

TEST(KnownFailures, ComplainWhenWhatTheySayPassesInEveryCase) {
  const std::string text = list(entry(R"(, "backend": "scalar.unified", "kind": "hard")"));
  KnownFailures passes(text, "k.json");
  EXPECT_THAT(passes.unexpected_passes(), IsEmpty());  // nothing was judged
  EXPECT_EQ(passes.meet(result_of(Verdict::unsupported)), nullptr);
  EXPECT_THAT(passes.unexpected_passes(), IsEmpty());
  EXPECT_EQ(passes.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_EQ(passes.meet(result_of(Verdict::mismatch, "lse")), nullptr);
  EXPECT_THAT(passes.unexpected_passes(),
              ElementsAre("known failure \"n\" no longer fails, in 2 cases that it is about: drop "
                          "it, or see https://example.org/1"));
  KnownFailures fails(text, "k.json");
  EXPECT_EQ(fails.meet(result_of(Verdict::pass)), nullptr);
  EXPECT_NE(fails.meet(result_of(Verdict::mismatch)), nullptr);
  EXPECT_THAT(fails.unexpected_passes(), IsEmpty());
}

TEST(KnownFailures, ExpireAfterTheirLastDay) {
  const KnownFailures known(list(entry(R"(, "backend": "scalar")")), "k.json");
  EXPECT_THAT(known.expired("2027-01-31"), IsEmpty());
  EXPECT_THAT(known.expired("2027-02-01"),
              ElementsAre("known failure \"n\" expired on 2027-01-31: https://example.org/1"));
  EXPECT_THAT(today(), SizeIs(10));
  EXPECT_GT(today(), "2026-01-01");
}

TEST(KnownFailures, RefuseAListThatHidesEverythingOrSaysNothing) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      const KnownFailures known(text, "k.json");
    } catch (const FixtureError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of(list(entry(""))), HasSubstr("k.json: /known/0"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "")"))), HasSubstr("backend is empty"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "a", "window": 4)"))), HasSubstr("window"));
  EXPECT_THAT(error_of(list(entry(R"(, "backend": "a")") + "," + entry(R"(, "backend": "b")"))),
              HasSubstr("stands twice"));
  for (const char* const day : {"2027-02-30", "soon", "2027-1-31", "2027-13-01"}) {
    EXPECT_THAT(error_of(list(std::string(R"({"name": "n", "issue": "i", "backend": "b",
        "expires": ")") + day +
                              "\"}")),
                HasSubstr("is no day"))
        << day;
  }
  EXPECT_THAT(error_of(R"({"schema": 2, "known": []})"), HasSubstr("schema 1"));
  EXPECT_THROW(KnownFailures::from_file("no/such/file"), FixtureError);
}

class FoundFailures : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

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

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("attest_found." + std::to_string(getpid()));
};

TEST_F(FoundFailures, AreJudgedAgainOnTheirBackendAlone) {
  const RunPlan plan = plan_for("faulty-causal_one_too_short.unified@cpu");
  run_cases(plan, {});
  std::vector<FoundAgain> found;
  const auto keep = [&](const FoundAgain& one) { found.push_back(one); };
  judge_found_failures(plan, keep);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found[0].still_fails);
  EXPECT_THAT(in_words(found[0]), HasSubstr("still fails by hard: " + folder.string()));
  found.clear();
  judge_found_failures(plan_for("scalar.unified@cpu"), keep);
  EXPECT_THAT(found, IsEmpty());
  RunPlan reported = plan;
  reported.rules = RulesMode::report;
  judge_found_failures(reported, keep);
  EXPECT_THAT(found, IsEmpty());
}

/// Fixed, as if its kernel were another.
TEST_F(FoundFailures, SayWhatNoLongerFails) {
  run_cases(plan_for("faulty-causal_one_too_short.unified@cpu"), {});
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    Fixture fixture = load_fixture(file.path());
    fixture.backend = "scalar.unified@cpu";
    write_atomically(file.path(), to_json(fixture));
  }
  std::vector<FoundAgain> found;
  judge_found_failures(plan_for("scalar.unified@cpu"),
                       [&](const FoundAgain& one) { found.push_back(one); });
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].still_fails);
  EXPECT_THAT(in_words(found[0]), HasSubstr("no longer fails: " + folder.string()));
  // Only what passed is fixed: a case that was not judged, or could not have failed, is kept.
  for (const Verdict verdict : {Verdict::unsupported, Verdict::untrusted, Verdict::unavailable}) {
    found[0].result.judgement.verdict = verdict;
    found[0].result.judgement.reason = "page 1";
    EXPECT_THAT(in_words(found[0]), HasSubstr(std::string(name(verdict)) + ": page 1"));
    EXPECT_THAT(in_words(found[0]), Not(HasSubstr("can be deleted")));
  }
}

TEST_F(FoundFailures, OfAFolderThatIsNotThereAreNone) {
  judge_found_failures(plan_for("scalar.unified@cpu"), [](const FoundAgain&) { FAIL(); });
}

TEST_F(FoundFailures, ThatAreKnownDoNotCountNorCostAShrink) {
  RunPlan plan = plan_for("faulty-causal_one_too_short.unified@cpu");
  KnownFailures known(list(entry(R"(, "backend": "faulty-causal_one_too_short")")), "k.json");
  plan.known = &known;
  const RunSummary summary = run_cases(plan, {});
  EXPECT_EQ(summary.tallies[0].failed(), 0);
  EXPECT_GT(summary.tallies[0].known, 0);
  EXPECT_EQ(summary.tallies[0].cases(), 3);
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_THAT(known.unexpected_passes(), IsEmpty());
}

}  // namespace
}  // namespace attest
