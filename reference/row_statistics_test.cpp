#include "reference/row_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reference/simulated_kernel.hpp"

namespace attest {
namespace {

constexpr std::int64_t rows = 24;

struct Rows {
  explicit Rows(std::int64_t committed, Dtype out = Dtype::bf16)
      : source(problem(committed, out), Recipe::normal, 6),
        meaning(attended(source.problem())),
        expected(reference_attention(meaning, source)) {}

  static Problem problem(std::int64_t committed, Dtype out) {
    Problem p;
    p.model = {.num_q_heads = 8, .num_kv_heads = 2, .head_dim = 128, .v_head_dim = 128};
    p.model.softmax_scale = 1 / std::sqrt(128.0);
    p.model.out_dtype = out;
    p.pool = {.page_size = 64, .num_pages = committed / 64 + 2};
    p.requests = {{.sequence = 1, .committed = committed, .new_tokens = rows}};
    return p;
  }
  ErrorModel model(const NumericsProfile& profile) const {
    return error_model(profile, source.problem().model, expected);
  }
  RowStatistics of(const Output& got, const NumericsProfile& profile, std::int64_t row,
                   std::int64_t head) const {
    return row_statistics(model(profile), expected, row, head,
                          std::span(got.values).subspan(got.index(row, head), 128));
  }

  TensorSource source;
  Attended meaning;
  Expected expected;
};

TEST(RowStatistics, ZOfACleanKernelLiesBetweenHalfAndOne) {
  for (const std::int64_t committed : {64, 1000}) {
    const Rows r(committed);
    const Output got = simulate(r.meaning, r.source);
    for (std::int64_t row = 0; row < rows; ++row) {
      const double z = r.of(got, profile_of({}), row, row % 8).z;
      EXPECT_GT(z, 0.4) << "row " << row << " after " << committed;
      EXPECT_LT(z, 1.0) << "row " << row << " after " << committed;
    }
  }
}

TEST(RowStatistics, ZIsSmallerForTheCentredFormOnlyWhereTheKernelHasIt) {
  const Rows r(30);
  const SimulatedKernel sums_rounded{.denominator_sums_rounded_p = true};
  const Output got = simulate(r.meaning, r.source, sums_rounded);
  EXPECT_GT(r.of(got, profile_of(sums_rounded), 3, 3).z, r.of(got, profile_of({}), 3, 3).z);
}

TEST(RowStatistics, ZOfAnExactResultIsOutputRoundingAlone) {
  const Rows r(1000, Dtype::f32);
  const Output got = rounded_output(r.expected.out, r.expected.lse, r.meaning, r.source);
  EXPECT_LT(r.of(got, profile_of({}), 0, 0).z, 1e-3);
}

TEST(RowStatistics, ZIsInfiniteWhereAnExactZeroIsOff) {
  Rows r(10);
  r.meaning.rows[0].keys.clear();
  r.expected = reference_attention(r.meaning, r.source);
  Output got = rounded_output(r.expected.out, r.expected.lse, r.meaning, r.source);
  EXPECT_EQ(r.of(got, profile_of({}), 0, 0).z, 0);
  EXPECT_FALSE(r.of(got, profile_of({}), 0, 0).has_gain);
  got.values[5] = 1e-6F;
  EXPECT_EQ(r.of(got, profile_of({}), 0, 0).z, std::numeric_limits<double>::infinity());
}

// A sink may take all but 1e-29 of the weight; the float sums of squares are 0 then, the errors of
// the scores are not.
TEST(RowStatistics, ZSurvivesTheUnderflowOfItsSums) {
  Rows r(0, Dtype::f32);
  Output got = rounded_output(r.expected.out, r.expected.lse, r.meaning, r.source);
  Expected& e = r.expected;
  ASSERT_EQ(e.visible[0], 1);
  for (std::size_t d = 0; d < 128; ++d) {
    e.out[d] *= 1e-29;
    e.w2v[d] = e.w2v2[d] = 0;
    got.values[d] = static_cast<float>(e.out[d] * (1 + 5e-7));
  }
  e.w2[0] = 0;
  e.lse[0] += 29 * std::log(10.0);
  NumericsProfile f32;
  f32.p_dtype = Dtype::f32;
  EXPECT_LT(r.of(got, f32, 0, 0).z, 1.0);
  for (std::size_t d = 0; d < 128; ++d) got.values[d] = static_cast<float>(e.out[d] * 1.001);
  EXPECT_GT(r.of(got, f32, 0, 0).z, 10.0);
}

TEST(RowStatistics, GainScattersAsItsVarianceSays) {
  for (const std::int64_t committed : {20, 1000}) {
    const Rows r(committed);
    const Output got = simulate(r.meaning, r.source);
    double squares = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t head = 0; head < 8; ++head) {
        const RowStatistics s = r.of(got, profile_of({}), row, head);
        squares += s.gain_error * s.gain_error / s.gain_variance;
      }
    }
    const double rms = std::sqrt(squares / (rows * 8));
    EXPECT_GT(rms, 0.15) << committed;
    EXPECT_LT(rms, 1.0) << committed;
  }
}

TEST(RowStatistics, PooledGainFindsALossOfThreePerMilleThatNoRowShows) {
  const Rows r(1000);
  Output got = simulate(r.meaning, r.source);
  for (float& x : got.values) x *= 0.997F;
  GainEstimate pooled;
  for (std::int64_t row = 0; row < rows; ++row) {
    const RowStatistics s = r.of(got, profile_of({}), row, 0);
    EXPECT_LT(s.z, 1.5);
    pooled.add(s);
  }
  EXPECT_NEAR(pooled.error(), -0.003, 5e-4);
  EXPECT_GT(std::abs(pooled.error()), pooled.limit());
}

}  // namespace
}  // namespace attest
