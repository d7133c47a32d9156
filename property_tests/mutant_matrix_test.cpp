#include "property_tests/mutant_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "property_tests/generators.hpp"

namespace attest {
namespace {

TEST(FieldMutants, ChangeEveryFieldOfEverySignatureOnSomeCall) {
  for (const Signature signature : generated_signatures) {
    std::set<std::string> changed;
    std::set<std::string> all;
    const Backend& kernel = *select_backends("scalar." + std::string(name(signature))).front();
    for (std::uint64_t i = 0; i < 100; ++i) {
      const Case c = generate(
          5, i, {.signature = signature, .capabilities = &kernel.capabilities(), .max_kv = 64});
      const auto lowered = call_of(c, make_slot_map(c.problem));
      if (!std::holds_alternative<Call>(lowered)) continue;
      const Call& call = std::get<Call>(lowered);
      for (const FieldMutant& mutant : field_mutants(signature)) {
        all.insert(mutant.field);
        const auto other = mutated(call, mutant, i);
        if (!other) continue;
        EXPECT_FALSE(*other == call) << mutant.field << ": " << mutant.change;
        changed.insert(mutant.field);
      }
    }
    // No generated call passes these.
    for (const char* absent : {"qq_bias", "num_kv_splits"}) all.erase(absent);
    EXPECT_EQ(changed, all) << name(signature);
  }
}

TEST(FieldMutants, LeaveEveryOtherFieldAlone) {
  const Case c = generate(5, 0, {.signature = Signature::unified});
  const auto call = std::get<Call>(call_of(c, make_slot_map(c.problem)));
  auto expected = std::get<UnifiedCall>(call);
  ++expected.max_seqlen_q;
  EXPECT_EQ(mutated(call, {"max_seqlen_q", "+ 1"}, 0), Call(expected));
  EXPECT_EQ(mutated(call, {"no such field", "+ 1"}, 0), std::nullopt);
}

// Sound: what the rules accept computes what the scheduler meant. Complete: every rule that rejects
// shows a call that goes wrong, or says why it rejects all the same.
TEST(FieldMutants, AreRejectedExactlyWhereTheNumbersGoWrong) {
  MutantMatrix matrix;
  std::int64_t calls = 0;
  std::int64_t wrong = 0;
  std::int64_t accepted_and_right = 0;
  try_mutants({.seed = 1, .calls = 2000}, [&](Signature signature, const MutantTrial& trial) {
    ++calls;
    matrix.add(signature, trial);
    wrong += trial.launched && !trial.right ? 1 : 0;
    accepted_and_right += !trial.rejected() && trial.right ? 1 : 0;
    EXPECT_EQ(unexplained_outcome(signature, trial), "");
  });
  EXPECT_THAT(matrix.unjustified_rules(), testing::IsEmpty());
  EXPECT_GE(calls, 1900);
  EXPECT_GT(wrong, calls / 4);
  EXPECT_GT(accepted_and_right, calls / 20);
}

TEST(Mutants, HaveReasonsForRulesThatExist) {
  for (const Rule& rule : all_rules()) {
    const std::string_view why = conservative_because(rule.id);
    EXPECT_TRUE(why.empty() || why.size() > 20) << rule.id;
  }
  EXPECT_EQ(conservative_because("no.such_rule"), "");
  for (const std::string_view id : conservative_rules()) EXPECT_TRUE(find_rule(id)) << id;
}

TEST(Mutants, AreSurprisingWhenNothingExplainsThem) {
  MutantTrial trial{.mutant = {"seqused_k", "an entry - 1"}, .launched = true, .right = false};
  EXPECT_THAT(unexplained_outcome(Signature::unified, trial),
              testing::HasSubstr("no rule rejects it"));
  trial.rejecting = {"seqused_k.counts_this_steps_tokens"};
  EXPECT_EQ(unexplained_outcome(Signature::unified, trial), "");
  trial.rejecting.clear();
  trial.noting = {"seqused_k.is_int64"};
  EXPECT_EQ(unexplained_outcome(Signature::unified, trial), "");
}

TEST(Mutants, NeedOneWrongOutputForEveryRuleThatRejects) {
  const auto rules_after = [](const std::string& rule, int right_calls, bool ever_wrong) {
    MutantMatrix matrix;
    MutantTrial trial{.mutant = {"seq_lens", "+"}, .rejecting = {rule}, .launched = true};
    trial.right = true;
    for (int i = 0; i < right_calls; ++i) matrix.add(Signature::extend, trial);
    trial.right = false;
    if (ever_wrong) matrix.add(Signature::extend, trial);
    return matrix.unjustified_rules();
  };
  EXPECT_EQ(rules_after("seq_lens.is_int64", 3, false), std::vector<std::string>());
  EXPECT_EQ(rules_after("seq_lens.fits_the_table", 3, true), std::vector<std::string>());
  EXPECT_EQ(rules_after("seq_lens.fits_the_table", 2, false), std::vector<std::string>())
      << "a key of no weight changes no output";
  EXPECT_EQ(rules_after("seq_lens.fits_the_table", 3, false),
            std::vector<std::string>{"seq_lens.fits_the_table"});
}

TEST(Mutants, FillAMatrixByFieldAndChange) {
  MutantMatrix matrix;
  matrix.add(Signature::extend, {.mutant = {"seq_lens", "an entry + 1"},
                                 .rejecting = {"seq_lens.counts_committed_and_new_tokens"},
                                 .launched = true,
                                 .right = false});
  EXPECT_THAT(matrix.text(),
              testing::HasSubstr("| seq_lens: an entry + 1 | 1 | 1 | 0 | 1 | 1 | 0 | "
                                 "0 | seq_lens.counts_committed_and_new_tokens 1 |"));
}

}  // namespace
}  // namespace attest
