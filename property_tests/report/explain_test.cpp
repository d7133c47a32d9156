#include "property_tests/report/explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contracts/rules.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/report/examples.hpp"

namespace attest {
namespace {

TEST(Explain, HasAnExampleOfEveryRuleInTheBinary) {
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(std::any_of(rule_examples().begin(), rule_examples().end(),
                            [&](const Example& example) { return example.rule == rule.id; }))
        << rule.id;
  }
}

TEST(Explain, ShowsEveryRuleBrokenByItsExample) {
  for (const Rule& rule : all_rules()) {
    const auto text = explain_text(rule.id, Console::silent());
    ASSERT_TRUE(text) << rule.id;
    EXPECT_NE(text->find("  it says    "), std::string::npos) << *text;
    EXPECT_EQ(text->find("cannot be shown"), std::string::npos) << *text;
    EXPECT_EQ(text->find("only for kernels"), std::string::npos) << *text;
  }
}

TEST(Explain, KnowsEveryMetadataFault) {
  for (const MetadataFault& fault : all_metadata_faults()) {
    EXPECT_TRUE(explain_text(fault.id, Console::silent())) << fault.id;
    EXPECT_NE(faults_text(Console::silent()).find(fault.id), std::string::npos);
  }
}

TEST(Explain, KnowsFaultsBetweenSteps) {
  const auto text = explain_text("lengths_of_the_captured_step", Console::silent());
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("only in fixtures with a trace"), std::string::npos) << *text;
  EXPECT_NE(faults_text(Console::silent()).find("lengths_of_the_captured_step"), std::string::npos);
}

TEST(Explain, HasNoAnswerForAnUnknownWord) {
  EXPECT_FALSE(explain_text("bananas", Console::silent()));
  EXPECT_EQ(
      unknown_subject("fautls").find("no rule, fault or other name 'fautls'; did you mean fault"),
      0U)
      << unknown_subject("fautls");
}

TEST(Explain, SuggestsNothingThatIsNoFaultOfACall) {
  const std::string rule(all_rules().front().id);
  EXPECT_EQ(unknown_fault(rule).find("no fault of a call is named '" + rule + "', which is a rule"),
            0U);
  EXPECT_EQ(unknown_fault(rule).find("did you mean " + rule), std::string::npos);
  EXPECT_NE(unknown_fault("seqused_k_short_by_on").find("did you mean seqused_k_short_by_one"),
            std::string::npos)
      << unknown_fault("seqused_k_short_by_on");
  EXPECT_NE(unknown_fault("hard").find(", which is another name: oracle"), std::string::npos);
}

TEST(Explain, JsonOfOneRuleHoldsItsExamples) {
  const Rule& rule = all_rules().front();
  const auto json = nlohmann::json::parse(rules_json(rule.id));
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["id"], rule.id);
  EXPECT_FALSE(json[0]["examples"].empty());
}

}  // namespace
}  // namespace attest
