#include "property_tests/bench/bench.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "contracts/signatures.hpp"
#include "fixtures/captured_check.hpp"
#include "property_tests/bench/captured_text.hpp"
#include "property_tests/bench/small_cases.hpp"

#include "property_tests/generators.hpp"

namespace attest {
namespace {

// No time is asserted here: only that what is timed is what it says.

TEST(Bench, SmallCasesAreLegalAndAsSmallAsTheyClaim) {
  for (const Case& c : small_cases()) {
    EXPECT_EQ(problem_error(c.problem), std::nullopt) << c.origin;
    EXPECT_EQ(c.problem.model.num_q_heads, 8);
    EXPECT_EQ(c.problem.model.num_kv_heads, 2);
    EXPECT_EQ(c.problem.model.head_dim, 64);
    EXPECT_LE(c.problem.max_kv_len(), 512) << c.origin;
  }
}

TEST(Bench, SmallCasesCoverEveryMode) {
  std::set<Mode> modes;
  for (const Case& c : small_cases()) modes.insert(c.problem.mode);
  EXPECT_EQ(modes, (std::set<Mode>{Mode::decode, Mode::extend, Mode::mixed, Mode::target_verify,
                                   Mode::draft_extend_v2, Mode::draft_decode}));
}

TEST(Bench, RuleTimesAreOfCallsThatTheRulesAccept) {
  // A batch of 256 and one of 8 each, and the two of a captured line.
  EXPECT_EQ(measure_rules().size(), 2 * generated_signatures.size() + 2);
}

TEST(Bench, CapturedTextReadsBackAsTheCallAndItsTruth) {
  Problem problem;
  problem.model.num_q_heads = 8;
  problem.model.num_kv_heads = 2;
  problem.model.head_dim = problem.model.v_head_dim = 128;
  problem.mode = Mode::target_verify;
  problem.num_draft_tokens = 3;
  problem.context_len = 256;
  problem.pool.num_pages = 32;
  problem.requests = {{.sequence = 0, .committed = 30, .new_tokens = 3},
                      {.sequence = 1, .committed = 41, .new_tokens = 3}};
  const SlotMap slots = make_slot_map(problem);
  const auto lowered = lower_unified(problem, slots);
  const auto& call = std::get<UnifiedCall>(lowered);
  const CapturedCall captured = parse_captured(captured_text(call, problem, slots), "c", 1);
  const auto& read = std::get<UnifiedCall>(captured.call.value());
  EXPECT_EQ(read.block_table.values, call.block_table.values);
  EXPECT_EQ(read.seqused_k, [&] {
    IntArray expected = call.seqused_k;
    expected.meta.storage = "m5";
    return expected;
  }());
  EXPECT_EQ(captured.problem->requests[1].committed, 41);
  EXPECT_EQ(captured.problem->pool.num_pages, 32);
  EXPECT_EQ(check_captured(captured).verdict, Verdict::pass);
}

TEST(Bench, TargetsAreFloorsOrCeilings) {
  Measurement m{.value = 0.7, .target = 0.6};
  EXPECT_TRUE(m.meets_target());
  m.target_is_floor = false;
  EXPECT_FALSE(m.meets_target());
  m.target.reset();
  EXPECT_TRUE(m.meets_target());
}

TEST(Bench, JsonSaysWhetherATargetIsMet) {
  const std::vector<Measurement> measurements = {
      {.id = "a", .says = "b", .value = 3, .unit = "x", .target = 2.5, .target_is_floor = false}};
  const auto json = nlohmann::json::parse(bench_json(measurements));
  EXPECT_EQ(json["measurements"][0]["met"], false);
  EXPECT_EQ(json["measurements"][0]["ratio"], true);
  EXPECT_FALSE(json["machine"]["cpu"].get<std::string>().empty());
}

}  // namespace
}  // namespace attest
