#include "reference/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reference/error_bound.hpp"
#include "reference/oracles.hpp"
#include "reference/simulated_kernel.hpp"

namespace attest {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Two requests, 8:2 heads of 64, three verify rows and one: big enough for every oracle.
Problem small_step(std::int64_t committed = 300) {
  Problem p;
  p.model = {.num_q_heads = 8, .num_kv_heads = 2, .head_dim = 64, .v_head_dim = 64};
  p.pool = {.page_size = 16, .num_pages = 2 * (committed / 16 + 2)};
  p.requests = {{.sequence = 3, .committed = committed, .new_tokens = 3},
                {.sequence = 5, .committed = committed - 7, .new_tokens = 1}};
  return p;
}

/// A case with everything compare() needs; `got` starts as the perfect output.
struct Case {
  explicit Case(const Problem& p = small_step(), Recipe recipe = Recipe::normal)
      : source(p, recipe, 11),
        meaning(attended(p)),
        expected(reference_attention(meaning, source)),
        got(rounded_output(expected.out, expected.lse, meaning, source)),
        profile(profile_of({})) {}

  std::vector<OracleResult> judge() const {
    return compare(meaning, expected, got, profile, source);
  }
  /// One oracle's result; a result named "absent" when it did not apply.
  OracleResult judge(std::string_view oracle) const {
    for (const OracleResult& result : judge()) {
      if (result.oracle == oracle) return result;
    }
    return {.oracle = "absent"};
  }
  void mark_written() { std::fill(got.untouched.begin(), got.untouched.end(), std::uint8_t{0}); }

  TensorSource source;
  Attended meaning;
  Expected expected;
  Output got;
  NumericsProfile profile;
};

TEST(Compare, PassesThePerfectOutput) {
  const Case c;
  EXPECT_TRUE(all_passed(c.judge()));
  EXPECT_EQ(c.judge().size(), 5U) << "rows, hard, z, gain, lse";
  for (const OracleResult& result : c.judge()) {
    EXPECT_GT(result.compared, 0) << result.oracle;
    EXPECT_LT(result.worst, 0.8) << result.oracle;
    EXPECT_EQ(result.detail, "") << result.oracle;
  }
}

TEST(Compare, NeedsEveryOracle) {
  EXPECT_FALSE(all_passed({}));
  EXPECT_FALSE(all_passed({{.oracle = "rows", .passed = true}, {.oracle = "hard"}}));
}

TEST(Compare, NeverPassesNaN) {
  Case c;
  c.got.values[c.got.index(1, 4, 17)] = nan;
  for (const char* oracle : {"rows", "hard", "z", "gain"}) {
    EXPECT_FALSE(c.judge(oracle).passed) << oracle;
  }
  EXPECT_EQ(c.judge("rows").detail, "row 1 head 4 (request 0, token 1): element 17 is NaN");
  EXPECT_EQ(c.judge("hard").failures, 1);
  EXPECT_EQ(c.judge("hard").element, 17);
}

TEST(Compare, NeverPassesInfinity) {
  Case c;
  c.got.values[c.got.index(1, 4, 17)] = infinity;
  EXPECT_FALSE(c.judge("hard").passed);
  EXPECT_FALSE(c.judge("z").passed);
  EXPECT_FALSE(c.judge("gain").passed);
}

TEST(Compare, NeverPassesWhenNothingWasCompared) {
  Case c;
  for (AttendedRow& row : c.meaning.rows) row.expect = RowExpectation::any;
  for (const OracleResult& result : c.judge()) {
    EXPECT_FALSE(result.passed) << result.oracle;
    EXPECT_EQ(result.compared, 0) << result.oracle;
    EXPECT_EQ(result.detail, "nothing was compared") << result.oracle;
  }
}

TEST(Compare, RefusesAnOutputOfTheWrongShape) {
  Case c;
  c.got.rows = 3;
  for (const OracleResult& result : c.judge()) {
    EXPECT_FALSE(result.passed);
    EXPECT_EQ(result.detail, "the output is (3, 8, 64), the step needs (4, 8, 64)");
  }
  Case short_array;
  short_array.got.values.pop_back();
  EXPECT_THAT(short_array.judge("hard").detail, HasSubstr("2047 values"));
}

TEST(Compare, IgnoresPaddedRowsBehindTheStep) {
  Case c;
  c.got.rows = 5;
  c.got.values.resize(5 * 8 * 64, nan);
  c.got.untouched.resize(5 * 8);
  c.got.lse.resize(5 * 8, nan);
  EXPECT_TRUE(all_passed(c.judge()));
}

TEST(Compare, FlagsAnOutputOfZeros) {
  Case c;
  std::fill(c.got.values.begin(), c.got.values.end(), 0.0F);
  EXPECT_TRUE(c.judge("rows").passed) << "zeros are numbers";
  EXPECT_FALSE(c.judge("hard").passed);
  EXPECT_FALSE(c.judge("z").passed);
  EXPECT_FALSE(c.judge("gain").passed);
}

TEST(Compare, FlagsAnOutputThatWasNeverWritten) {
  Case c;
  std::fill(c.got.values.begin(), c.got.values.end(), nan);
  std::fill(c.got.untouched.begin(), c.got.untouched.end(), std::uint8_t{1});
  EXPECT_EQ(c.judge("rows").failures, 4 * 8);
  EXPECT_THAT(c.judge("rows").detail, HasSubstr("row 0 head 0 (request 0, token 0): was never"));
}

TEST(Compare, FlagsOneElementTwoBoundsOff) {
  Case c;
  const std::size_t at = c.got.index(2, 5, 40);
  const RowBound bound =
      row_bound(error_model(c.profile, c.source.problem().model, c.expected), c.expected, 2, 5);
  const double limit = bound.of(c.expected.abs_v[at], c.expected.out[at]);
  c.got.values[at] = static_cast<float>(c.expected.out[at] + 2 * limit);
  const OracleResult hard = c.judge("hard");
  EXPECT_FALSE(hard.passed);
  EXPECT_EQ(hard.failures, 1);
  EXPECT_NEAR(hard.worst, 2, 1e-3);
  EXPECT_EQ(std::make_tuple(hard.row, hard.head, hard.element), std::make_tuple(2, 5, 40));
  EXPECT_THAT(hard.detail, StartsWith("row 2 head 5 element 40 (request 0, token 2): got "));
  EXPECT_THAT(hard.detail, HasSubstr(", bound "));
  c.got.values[at] = static_cast<float>(c.expected.out[at] + 0.99 * limit);
  EXPECT_TRUE(c.judge("hard").passed);
}

TEST(Compare, FlagsTruncationTowardZeroByItsGainAlone) {
  const Problem p = small_step(1000);
  Case c(p);
  c.got = simulate(c.meaning, c.source, {.truncate_out = true});
  const OracleResult gain = c.judge("gain");
  EXPECT_FALSE(gain.passed);
  EXPECT_THAT(gain.detail, StartsWith("whole output: got / expected = 0.99"));
  EXPECT_TRUE(c.judge("hard").passed) << "each element is within its bound";
  EXPECT_TRUE(c.judge("z").passed) << "each row is within its noise";
}

TEST(Compare, FlagsTruncatedWeightsUnlessTheDenominatorSumsThem) {
  Case c(small_step(1000));
  c.got = simulate(c.meaning, c.source, {.truncate_p = true});
  EXPECT_FALSE(c.judge("gain").passed);
  const SimulatedKernel benign{.denominator_sums_rounded_p = true, .truncate_p = true};
  c.got = simulate(c.meaning, c.source, benign);
  c.profile = profile_of(benign);
  EXPECT_TRUE(all_passed(c.judge()));
}

TEST(Compare, FlagsOneHeadThatIsOnePercentTooLarge) {
  Case c;
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t d = 0; d < 64; ++d) c.got.values[c.got.index(r, 6, d)] *= 1.01F;
  }
  const OracleResult gain = c.judge("gain");
  EXPECT_FALSE(gain.passed);
  EXPECT_EQ(gain.row, -1);
  EXPECT_EQ(gain.head, 6);
}

TEST(Compare, FlagsOneLostKeyOf4096OnNormalData) {
  Case c(small_step(4093));
  Attended lost = c.meaning;
  lost.rows[2].keys = {{3, 0, 2000}, {3, 2001, 2095}};
  const Expected wrong = reference_attention(lost, c.source);
  c.got = rounded_output(wrong.out, wrong.lse, c.meaning, c.source);
  const OracleResult z = c.judge("z");
  EXPECT_FALSE(z.passed);
  EXPECT_EQ(z.row, 2);
  EXPECT_THAT(z.detail, StartsWith("row 2 head "));
}

TEST(Compare, FlagsADroppedNeedleByTheHardBound) {
  Case c(small_step(4093), Recipe::needle);
  ASSERT_EQ(c.judge("z").oracle, "absent") << "needles make roundings dependent";
  ASSERT_EQ(c.judge("gain").oracle, "absent");
  Attended lost = c.meaning;
  --lost.rows[2].keys.back().count;  // the row's own key
  const Expected wrong = reference_attention(lost, c.source);
  c.got = rounded_output(wrong.out, wrong.lse, c.meaning, c.source);
  const OracleResult hard = c.judge("hard");
  EXPECT_FALSE(hard.passed);
  EXPECT_GT(hard.worst, 10);
}

TEST(Compare, JudgesZAndGainOnlyWhereTheProfileHasALimit) {
  Case c;
  c.profile.z_limit.clear();
  EXPECT_EQ(c.judge("z").oracle, "absent");
  EXPECT_EQ(c.judge("gain").oracle, "absent");
  EXPECT_EQ(c.judge("hard").oracle, "hard");
}

TEST(Compare, HoldsRowsToZeroAndUntouched) {
  Case c;
  c.meaning.rows[1].expect = RowExpectation::zero;
  c.meaning.rows[3].expect = RowExpectation::untouched;
  EXPECT_EQ(c.judge("rows").failures, 2 * 8);
  for (std::int64_t h = 0; h < 8; ++h) {
    for (std::int64_t d = 0; d < 64; ++d) c.got.values[c.got.index(1, h, d)] = d % 2 ? 0.0F : -0.0F;
    c.got.untouched[static_cast<std::size_t>(3 * 8 + h)] = 1;
  }
  EXPECT_TRUE(all_passed(c.judge()));
  c.got.values[c.got.index(1, 7, 3)] = 1e-30F;
  EXPECT_EQ(c.judge("rows").detail,
            "row 1 head 7 (request 0, token 1): element 3 is 1e-30, must be 0");
  c.got.values[c.got.index(1, 7, 3)] = nan;
  EXPECT_FALSE(c.judge("rows").passed);
}

TEST(Compare, LooksOnlyAtComputedRows) {
  Case c;
  c.expected = reference_attention(c.meaning, c.source, {.only_rows = {1}});
  EXPECT_TRUE(all_passed(c.judge()));
  EXPECT_EQ(c.judge("hard").compared, 8 * 64);
  EXPECT_EQ(c.judge("rows").compared, 4 * 8) << "row expectations need no reference";
}

TEST(Compare, FlagsALogSumExpOutsideItsBound) {
  Case c;
  const double bound =
      row_bound(error_model(c.profile, c.source.problem().model, c.expected), c.expected, 1, 2).lse;
  EXPECT_LT(bound, 1e-3);
  float& lse = c.got.lse[static_cast<std::size_t>(c.expected.row_index(1, 2))];
  lse += static_cast<float>(3 * bound);
  EXPECT_FALSE(c.judge("lse").passed);
  EXPECT_THAT(c.judge("lse").detail, StartsWith("row 1 head 2 (request 0, token 1): lse got "));
  lse = nan;
  EXPECT_FALSE(c.judge("lse").passed);
  c.got.lse.clear();
  EXPECT_EQ(c.judge("lse").oracle, "absent");
}

TEST(Compare, NeverPassesAgainstAnExpectationThatIsNaN) {
  Case c;
  Attended unknown = c.meaning;
  unknown.rows[0].keys.push_back({unknown_sequence, 4, 1});
  c.expected = reference_attention(unknown, c.source);
  EXPECT_EQ(c.judge("hard").failures, 8 * 64);
  EXPECT_FALSE(c.judge("z").passed);
  EXPECT_FALSE(c.judge("lse").passed);
}

TEST(Compare, WantsExactlyZeroOfAValueRowWithoutKeys) {
  Case c;
  c.meaning.rows[3].keys.clear();
  c.expected = reference_attention(c.meaning, c.source);
  c.got = rounded_output(c.expected.out, c.expected.lse, c.meaning, c.source);
  EXPECT_TRUE(all_passed(c.judge()));
  c.got.values[c.got.index(3, 0, 0)] = 1e-20F;
  EXPECT_FALSE(c.judge("hard").passed);
  EXPECT_FALSE(c.judge("z").passed);
}

TEST(Compare, ListsEveryOracleWithASentence) {
  EXPECT_EQ(all_oracles().size(), 5U);
  for (const Oracle& oracle : all_oracles()) EXPECT_FALSE(oracle.says.empty()) << oracle.name;
}

}  // namespace
}  // namespace attest
