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
  const CheckedLayers layers = captured().check();
  const std::vector<CheckedStep>& steps = layers.steps;
  EXPECT_GT(steps.size(), 3U);
  EXPECT_TRUE(fires(steps, "step.scale_agrees"));   // decode against verify of one layer
  EXPECT_TRUE(fires(steps, "step.window_agrees"));  // (127, -1) against (126, 0)
  EXPECT_EQ(steps_exit_code(steps), 2);
  EXPECT_THAT(steps_text(layers), HasSubstr("step.window_agrees: the window of sglang-"));
}

/// What the calls in one file of fixtures/corpus/steps are found to disagree in.
std::set<std::string> fired_in(const std::string& side, std::string_view rule) {
  const std::filesystem::path file = corpus / "../steps" / side / (std::string(rule) + ".jsonl");
  CallsByLayer calls;
  read_captured(file, [&](const CapturedCall& call) { calls.add(call); });
  const CheckedLayers layers = calls.check();
  EXPECT_EQ(layers.left_out, 0) << file;
  EXPECT_EQ(layers.steps.size(), 1U) << file;
  std::set<std::string> rules;
  for (const CheckedStep& step : layers.steps) {
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
  const CheckedLayers layers = calls.check();
  EXPECT_TRUE(layers.steps.empty());
  EXPECT_EQ(layers.alone, 1);
  EXPECT_EQ(steps_exit_code(layers.steps), 3);
  EXPECT_EQ(steps_text(layers),
            "\n0 layers of 0 calls: nothing was compared, for no layer has two calls; 1 call alone "
            "in its layer; 0 calls left out.\n");
}

TEST(Steps, LeaveOutCallsThatWereNotRead) {
  CallsByLayer calls;
  calls.add(CapturedCall{.id = "x", .unsupported = "why not"});
  const CheckedLayers layers = calls.check();
  EXPECT_EQ(layers.left_out, 1);
  EXPECT_THAT(steps_text(layers),
              HasSubstr("1 call left out, without a truth or not read by this version."));
}

/// The calls of a replay's accepted fixture that `keep` takes, `times` times.
CallsByLayer replays(bool captures, int times = 1) {
  CallsByLayer calls;
  const std::filesystem::path file =
      corpus / "../steps/accept/step.graph_tensors_are_the_captured.jsonl";
  for (int i = 0; i < times; ++i) {
    read_captured(file, [&](const CapturedCall& call) {
      if (captures || call.path == "replay") calls.add(call);
    });
  }
  return calls;
}

TEST(Steps, CountTheReplaysThatAreHeldAgainstNoCapture) {
  const CheckedLayers layers = replays(/*captures=*/false, 2).check();
  const std::vector<CheckedStep>& steps = layers.steps;
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps.front().replays, 2);
  EXPECT_EQ(steps.front().without_capture, 2);
  EXPECT_TRUE(steps.front().findings.empty());
  const std::string text = steps_text(layers);
  EXPECT_THAT(text, HasSubstr("2 of 2 replays not held against a capture"));
  EXPECT_THAT(text, HasSubstr(", of "));
  EXPECT_THAT(text, HasSubstr("0 disagree with themselves; 2 replays without a capture; 0 calls"));
  EXPECT_EQ(steps_exit_code(steps), 0);
  const CheckedLayers whole = replays(/*captures=*/true).check();
  EXPECT_EQ(whole.steps.front().replays, 1);
  EXPECT_EQ(steps_text(whole).find("without a capture"), std::string::npos);
}

TEST(Steps, CountTheLayersBehindTheLimit) {
  const CheckedLayers layers = captured().check();
  const auto blocks = [](const std::string& text) {
    std::ptrdiff_t count = 0;
    for (std::size_t at = 0; (at = text.find(" calls\n", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::ptrdiff_t all = blocks(steps_text(layers));
  ASSERT_GT(all, 2);
  const std::string text = steps_text(layers, 2);
  EXPECT_EQ(blocks(text), 2);
  EXPECT_THAT(text, HasSubstr("... and " + std::to_string(all - 2) + " more layer"));
}

TEST(Steps, EndWhereTheyAreStopped) {
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(replays(/*captures=*/true).check(&stop).steps.empty());
}

}  // namespace
}  // namespace attest
