#include "property_tests/bench/bench.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

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
  EXPECT_EQ(measure_rules().size(), generated_signatures.size());
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
