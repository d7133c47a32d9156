#include "property_tests/mutants/trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "property_tests/mutants/campaign.hpp"
#include "property_tests/mutants/mutant_cases.hpp"
#include "property_tests/stub_backend.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Mutant& mutant_named(std::string_view name) {
  return *mutants_of("all", name, false).front();
}

TrialPlan quick(std::int64_t keys = 512) {
  return {.keys = keys, .most_cases = 12, .most_seconds = 30};
}

TEST(Trials, KillAKernelByAnOracleThatPassesTheHonestOne) {
  const Trial trial = try_mutant(mutant_named("faulty-causal_one_too_short.unified@cpu"), quick());
  EXPECT_EQ(trial.outcome, Outcome::killed);
  EXPECT_FALSE(trial.oracles.empty());
  EXPECT_EQ(trial.honest_cases, 1);
  EXPECT_EQ(trial.false_failures, 0) << trial.false_failure;
}

TEST(Trials, KillMetadataByItsRuleAndByItsNumbers) {
  const Trial trial = try_mutant(mutant_named("metadata:prefix_short_by_draft_count"), quick());
  EXPECT_EQ(trial.outcome, Outcome::killed);
  EXPECT_THAT(trial.killed_by, StartsWith("rule seq"));
  EXPECT_FALSE(trial.numbers_by.empty());
}

/// As Ctrl-C does it: neither the honest kernel nor the shrinking of a kill is a reason to go on.
TEST(Trials, EndBetweenTwoLaunches) {
  std::atomic<bool> stop{false};
  StubBackend stub;
  stub.stub_name = "faulty-stub.unified@cpu";
  int stop_at = 1;
  stub.after = [&](const TensorSource&, const RunOptions&, RunResult& result) {
    result.out.values[0] += 1;
    if (stub.runs == stop_at) stop = true;
  };
  const Mutant mutant{.name = stub.stub_name, .source = "this test", .backend = &stub};
  TrialPlan plan = quick();
  plan.shrink_trials = 5'000;
  plan.stop = &stop;
  const Trial killed = try_mutant(mutant, plan);
  EXPECT_EQ(killed.outcome, Outcome::killed);
  EXPECT_EQ(killed.honest_cases, 0);
  EXPECT_EQ(stub.runs, 2) << "a case is launched with both poisons";
  stop = false;
  stub.runs = 0;
  stop_at = 3;
  const Trial shrunk = try_mutant(mutant, plan);
  EXPECT_EQ(shrunk.honest_cases, 1);
  EXPECT_EQ(stub.runs, 4) << "the first smaller case is the last";
}

TEST(Trials, KillAStepAGraphARelationAndARule) {
  for (const char* const name :
       {"step:mask_of_the_step_before", "faulty-graph_partitions_of_capture.unified@host",
        "faulty-splits_from_the_rows.unified@cpu", "faulty-splits_from_max_seqlen_k.unified@cpu",
        "rule:descales.are_the_layers"}) {
    const Trial trial = try_mutant(mutant_named(name), quick());
    EXPECT_EQ(trial.outcome, Outcome::killed) << name << ": " << trial.says;
    EXPECT_EQ(trial.false_failures, 0) << name << ": " << trial.false_failure;
  }
}

TEST(Trials, FindTheCostOfALaunchByARule) {
  const Trial trial = try_mutant(mutant_named("metadata:kv_heads_expanded"), quick());
  EXPECT_EQ(trial.outcome, Outcome::killed);
  EXPECT_THAT(trial.killed_by, StartsWith("rule "));
  EXPECT_TRUE(trial.numbers_by.empty());
}

TEST(Trials, DoNotCatchWhatIsEquivalent) {
  const Trial trial = try_mutant(mutant_named("faulty-sum_of_rounded_p"), quick());
  EXPECT_EQ(trial.outcome, Outcome::equivalent) << trial.killed_by << trial.says;
  EXPECT_THAT(trial.says, HasSubstr("within every bound"));
}

TEST(Trials, NameTheTestThatShowsWhatNoCaseCan) {
  const Trial trial = try_mutant(mutant_named("faulty-nan_key_dropped.extend"), quick());
  EXPECT_EQ(trial.outcome, Outcome::elsewhere);
  EXPECT_EQ(trial.says, "Nan.InAKeyShowsInEveryRowThatSeesIt");
}

TEST(Trials, SayThatAMutantSurvivedWhichNobodyLookedAtLongEnough) {
  TrialPlan none = quick();
  none.most_cases = 1;
  // Its first cases have no window.
  bool survived = false;
  for (none.seed = 1; none.seed < 12 && !survived; ++none.seed) {
    survived = try_mutant(mutant_named("faulty-window_one_too_short.extend"), none).outcome ==
               Outcome::survived;
  }
  EXPECT_TRUE(survived);
}

TEST(Trials, MakeTheKillingCaseSmaller) {
  TrialPlan plan = quick();
  plan.shrink_trials = 300;
  const Trial trial = try_mutant(mutant_named("faulty-causal_one_too_short.unified@cpu"), plan);
  EXPECT_EQ(trial.shrunk_requests, 1) << trial.shrunk;
  EXPECT_GT(trial.shrunk_trials, 0);
}

TEST(LongCases, HaveTheirKeysInEveryLiveRequestOrInOneBesideShortOnes) {
  int all = 0, mixed = 0;
  for (std::uint64_t i = 0; i < 120; ++i) {
    const auto c = case_of_length(1, i, 4096, {.signature = Signature::unified, .max_requests = 3});
    if (!c) continue;
    EXPECT_EQ(problem_error(c->problem), std::nullopt);
    int longs = 0, shorts = 0;
    for (const Request& r : c->problem.requests) {
      if (!r.live) continue;
      const bool is_long = r.kv_len() > 4096 - 384;
      EXPECT_LE(r.kv_len(), 4096 + 640);
      ++(is_long ? longs : shorts);
    }
    EXPECT_GE(longs, 1) << i;
    EXPECT_TRUE(shorts == 0 || (i % 4 == 3 && i > 24 && longs == 1)) << i;
    ++(shorts == 0 ? all : mixed);
  }
  EXPECT_GT(all, 20);
  EXPECT_GT(mixed, 2);
}

TEST(LongCases, PutAnEdgeOf128KeysAmongTheNewTokensAndKeepSomeWindows) {
  int edges = 0, windows = 0, shifted = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    const auto c = case_of_length(1, i, 4096, {.signature = Signature::unified, .max_requests = 3});
    if (!c) continue;
    windows += c->problem.model.window ? 1 : 0;
    shifted += c->recipe == Recipe::shifted ? 1 : 0;
    const Request& r = c->problem.requests.front();
    const bool between = r.committed / 128 != (r.kv_len() - 1) / 128;
    edges += i % 4 == 1 && r.new_tokens > 1 ? 1 : 0;
    EXPECT_TRUE(i % 4 != 1 || r.new_tokens < 2 || between) << describe(c->problem);
  }
  EXPECT_GT(edges, 3);
  EXPECT_GT(windows, 3);
  EXPECT_GT(shifted, 3);
}

/// What short contexts show must show in long ones: rows of a request on both sides of a split's
/// edge, a short request beside a long one, a window, logits that a cap takes to one value.
TEST(LongCases, ShowWhatShortOnesShow) {
  for (const char* const name :
       {"merge_stops_at_the_first_row.unified", "merge_stops_at_the_first_row.extend",
        "merge_stops_at_the_first_row.mla_decode", "context_is_total_length.decode",
        "hip_cap_after_mask", "hip_empty_split_is_nan"}) {
    TrialPlan plan = quick(4096);
    plan.most_cases = 80;
    const Trial trial = try_mutant(mutant_named(name), plan);
    EXPECT_EQ(trial.outcome, Outcome::killed) << name;
    EXPECT_EQ(trial.false_failures, 0) << name << ": " << trial.false_failure;
  }
}

/// At 16k keys and below, the limit lies past every key.
TEST(LongCases, ShowALimitOnTheKeysOnlyPastIt) {
  const Mutant& mutant = mutant_named("faulty-keys_past_16k_ignored.unified@cpu");
  TrialPlan plan = quick(20'000);
  plan.most_cases = 3;
  EXPECT_EQ(try_mutant(mutant, plan).outcome, Outcome::killed);
  EXPECT_EQ(try_mutant(mutant, quick()).outcome, Outcome::equivalent);
}

TEST(Campaigns, TryEveryMutantInEveryContextInOrder) {
  CampaignPlan plan{.mutants = mutants_of("rule-only", "rule:", false),
                    .contexts = {512, 4096},
                    .trial = quick()};
  std::size_t heard = 0;
  const std::vector<Trial> trials = run_campaign(plan, [&](const Trial&) { ++heard; });
  ASSERT_EQ(trials.size(), 2 * plan.mutants.size());
  EXPECT_EQ(heard, trials.size());
  for (std::size_t i = 0; i < plan.mutants.size(); ++i) {
    EXPECT_EQ(trials[i].mutant, plan.mutants[i]->name);
    EXPECT_EQ(trials[i].keys, 512);
    EXPECT_EQ(trials[i].outcome, Outcome::killed) << trials[i].mutant;
  }
}

TEST(Campaigns, RefuseASelectionOfNothing) {
  EXPECT_THROW(mutants_of("all", "no such mutant", false), std::invalid_argument);
  EXPECT_LT(mutants_of("all", "", true).size(), mutants_of("all", "", false).size());
}

}  // namespace
}  // namespace attest
