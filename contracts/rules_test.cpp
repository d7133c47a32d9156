#include "contracts/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "contracts/signatures.hpp"
#include "contracts/signatures/sample_problems.hpp"

namespace attest {
namespace {

using testing::ElementsAre;

TEST(Rules, HaveUniqueIdsThatNameAFieldAndAFact) {
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id << " stands twice";
    const std::size_t dot = rule.id.find('.');
    EXPECT_TRUE(dot != std::string_view::npos && dot > 0 && dot + 1 < rule.id.size()) << rule.id;
    EXPECT_EQ(rule.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_."),
              std::string_view::npos)
        << rule.id;
  }
  EXPECT_FALSE(ids.empty());
}

TEST(Rules, SayWhatWhyAndWhereFrom) {
  for (const Rule& rule : all_rules()) {
    EXPECT_FALSE(rule.says.empty()) << rule.id;
    EXPECT_FALSE(rule.why.empty()) << rule.id;
    EXPECT_FALSE(rule.source.empty()) << rule.id;
  }
}

TEST(Rules, ApplyToAtLeastOneSignature) {
  for (const Rule& rule : all_rules()) {
    bool any = false;
    for (const Signature signature : all_signatures) any |= rule.applies_to(signature);
    EXPECT_TRUE(any) << rule.id;
  }
}

TEST(Rules, AreFoundById) {
  for (const Rule& rule : all_rules()) EXPECT_EQ(find_rule(rule.id), &rule);
  EXPECT_EQ(find_rule("no.such_rule"), nullptr);
}

TEST(Rules, JudgeAMisshapenCallByItsShapeAlone) {
  const Problem p = sample_problem(Mode::target_verify, {{6, 3}, {4, 2}});
  const SlotMap slots = make_slot_map(p);
  Lowered<ExtendCall> lowered = lower_extend(p, slots);
  auto& call = std::get<ExtendCall>(lowered);
  call.seq_lens = int_array(Dtype::int64, {0});  // wrong in value, too
  const Report report = check(call, Truth{p, slots});
  ASSERT_EQ(report.findings().size(), 1U);
  EXPECT_EQ(report.findings()[0].rule, "batch.arrays_have_one_entry_per_request");
}

TEST(Rules, JudgeASizeNoTensorHasByItselfAlone) {
  const Problem p = sample_problem(Mode::target_verify, {{6, 3}});
  const SlotMap slots = make_slot_map(p);
  Lowered<ExtendCall> lowered = lower_extend(p, slots);
  auto& call = std::get<ExtendCall>(lowered);
  call.k_buffer.shape = {std::int64_t{1} << 41, 3, 32};  // three heads are wrong, too
  const Report report = check(call, Truth{p, slots});
  ASSERT_EQ(report.findings().size(), 1U);
  EXPECT_EQ(report.findings()[0].rule, "tensor.sizes_are_sane");
}

TEST(Report, KeepsTheFirstFindingsOfARuleAndCountsTheRest) {
  Report report(2);
  report.begin("a.rule", Severity::wrong);
  for (int i = 0; i < 5; ++i) report.add("x", std::to_string(i), "y");
  report.begin("b.rule", Severity::slow);
  report.add("x", "1", "y");
  report.add_more(10);
  ASSERT_EQ(report.findings().size(), 3U);
  EXPECT_EQ(report.findings()[1].got, "1");
  EXPECT_EQ(report.findings()[1].more, 3);
  EXPECT_EQ(report.findings()[2].more, 10);
  EXPECT_EQ(to_string(report.findings()[1]), "wrong a.rule: x is 1, expected y (and 3 more)");
}

TEST(Report, NeverLosesARejectionBehindAdvice) {
  Report report(1);
  report.begin("a.rule", Severity::policy);
  report.add("x", "1", "y");
  report.add("x", "2", "y");
  EXPECT_FALSE(report.rejects());
  report.add(Severity::fault, "x", "3", "y");
  EXPECT_TRUE(report.rejects());
}

TEST(Report, ListsAnArrayThatIsMissingOnce) {
  Report report;
  report.not_recorded("b");
  report.not_recorded("a");
  report.not_recorded("b");
  EXPECT_THAT(report.missing(), ElementsAre("b", "a"));
}

TEST(Severity, RejectsWhatIsWrongOrFaults) {
  EXPECT_TRUE(rejects(Severity::wrong));
  EXPECT_TRUE(rejects(Severity::fault));
  EXPECT_FALSE(rejects(Severity::slow));
  EXPECT_FALSE(rejects(Severity::policy));
  EXPECT_EQ(name(Severity::policy), "policy");
  EXPECT_EQ(name(RuleKind::runtime), "runtime");
}

}  // namespace
}  // namespace attest
