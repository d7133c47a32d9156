#include "property_tests/check_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "contracts/step_rules.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

const std::filesystem::path corpus =
    std::filesystem::path(ATTEST_SOURCE_DIR) / "fixtures/corpus/captured";

CallsByLayer captured() {
  CallsByLayer calls;
  read_captured(corpus, [&](const CapturedCall& call) { calls.add(call); });
  return calls;
}

bool fires(const std::vector<CheckedStep>& steps, const std::string& rule) {
  return std::ranges::any_of(steps, [&](const CheckedStep& step) {
    return std::ranges::count(step.findings, rule, &Finding::rule) > 0;
  });
}

TEST(Steps, ShowWhereTheCapturedLayersDisagreeWithThemselves) {
  const std::vector<CheckedStep> steps = captured().check();
  EXPECT_GT(steps.size(), 3U);
  EXPECT_TRUE(fires(steps, "step.scale_agrees"));   // decode against verify of one layer
  EXPECT_TRUE(fires(steps, "step.window_agrees"));  // (127, -1) against (126, 0)
  EXPECT_EQ(steps_exit_code(steps), 2);
  EXPECT_THAT(steps_text(steps, 0), HasSubstr("step.window_agrees: the window of sglang-"));
}

/// What the calls in one file of fixtures/corpus/steps are found to disagree in.
std::set<std::string> fired_in(const std::string& side, std::string_view rule) {
  const std::filesystem::path file = corpus / "../steps" / side / (std::string(rule) + ".jsonl");
  CallsByLayer calls;
  read_captured(file, [&](const CapturedCall& call) { calls.add(call); });
  EXPECT_EQ(calls.left_out(), 0) << file;
  const std::vector<CheckedStep> steps = calls.check();
  EXPECT_EQ(steps.size(), 1U) << file;
  std::set<std::string> rules;
  for (const CheckedStep& step : steps) {
    for (const Finding& finding : step.findings) rules.insert(finding.rule);
  }
  return rules;
}

TEST(Steps, HaveAnAcceptedAndARejectedPairForEveryRule) {
  for (const StepRule& rule : step_rules()) {
    EXPECT_TRUE(fired_in("reject", rule.id).contains(std::string(rule.id))) << rule.id;
    EXPECT_EQ(fired_in("accept", rule.id), std::set<std::string>()) << rule.id;
  }
}

TEST(Steps, GroupNothingThatIsAlone) {
  CallsByLayer calls;
  read_captured(corpus, [&](const CapturedCall& call) {
    if (call.id == "sglang-0190") calls.add(call);
  });
  EXPECT_TRUE(calls.check().empty());
  EXPECT_EQ(steps_exit_code(calls.check()), 3);
}

TEST(Steps, LeaveOutCallsThatWereNotRead) {
  CallsByLayer calls;
  calls.add(CapturedCall{.id = "x", .unsupported = "why not"});
  EXPECT_EQ(calls.left_out(), 1);
}

}  // namespace
}  // namespace attest
