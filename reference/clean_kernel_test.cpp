// Correct kernels must pass: float32 arithmetic with every rounding a profile can declare, over
// random problems of every feature and recipe.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "reference/compare.hpp"
#include "reference/random_problem.hpp"
#include "reference/simulated_kernel.hpp"

namespace attest {
namespace {

struct NamedKernel {
  std::string name;
  SimulatedKernel kernel;
};

const std::vector<NamedKernel>& kernels() {
  static const std::vector<NamedKernel> all = {
      {"bf16_p", {}},
      {"bf16_p_summed_rounded", {.denominator_sums_rounded_p = true}},
      {"f32_p", {.p_dtype = Dtype::f32}},
      {"f16_p_in_4_splits", {.p_dtype = Dtype::f16, .splits = 4}},
      {"f16_p_from_the_sink", {.p_dtype = Dtype::f16, .start_at_sink = true}},
      {"f16_p_from_the_sink_in_2_splits",
       {.p_dtype = Dtype::f16, .start_at_sink = true, .splits = 2}},
      {"coarse_exp_tile_1_in_8_splits", {.tile = 1, .splits = 8, .exp_error = 1.1e-4F}},
      {"rounded_scaled_q", {.round_scaled_q = true}},
      {"fp8_p", {.p_dtype = Dtype::fp8_e4m3fn}},
      {"fp8_p_summed_rounded", {.p_dtype = Dtype::fp8_e4m3fn, .denominator_sums_rounded_p = true}},
  };
  return all;
}

class CleanKernel : public testing::TestWithParam<NamedKernel> {};

TEST_P(CleanKernel, PassesEveryOracle) {
  const SimulatedKernel& kernel = GetParam().kernel;
  const NumericsProfile profile = profile_of(kernel);
  std::map<std::string, double> worst;
  for (std::uint64_t i = 0; i < 120; ++i) {
    const TensorSource source = random_source(i);
    const Attended meaning = attended(source.problem());
    const bool compares =
        std::any_of(meaning.rows.begin(), meaning.rows.end(),
                    [](const AttendedRow& row) { return row.expect == RowExpectation::value; });
    if (!compares) continue;
    const Expected expected =
        reference_attention(meaning, source, {.round_scaled_q = kernel.round_scaled_q});
    const Output got = simulate(meaning, source, kernel);
    for (const OracleResult& result : compare(meaning, expected, got, profile, source)) {
      EXPECT_TRUE(result.passed) << "case " << i << ", " << describe(source.problem()) << ", "
                                 << name(source.recipe()) << ": " << result.oracle << " "
                                 << result.detail;
      worst[result.oracle] = std::max(worst[result.oracle], result.worst);
    }
  }
  for (const auto& [oracle, share] : worst) {
    RecordProperty("worst_share_of_" + oracle, std::to_string(share));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CleanKernel, testing::ValuesIn(kernels()),
                         [](const auto& info) { return info.param.name; });

TEST(CleanKernel, WithAnUndeclaredRoundingOfQFailsOnPeakedData) {
  // What replaying q * scale is for: the rounding moves large logits by far more than f32 does.
  int failures = 0;
  int cases = 0;
  const SimulatedKernel kernel{.round_scaled_q = true};
  NumericsProfile silent = profile_of(kernel);
  silent.q_scaled_in_input_dtype = false;
  for (std::uint64_t i = 1; i < 80; i += 2) {  // recall and features
    const TensorSource source = random_source(i);
    if (source.problem().model.q_dtype == Dtype::f32) continue;
    const Attended meaning = attended(source.problem());
    const Expected expected = reference_attention(meaning, source);
    const auto results =
        compare(meaning, expected, simulate(meaning, source, kernel), silent, source);
    failures += all_passed(results) ? 0 : 1;
    ++cases;
  }
  EXPECT_GT(failures, cases / 4);
}

}  // namespace
}  // namespace attest
