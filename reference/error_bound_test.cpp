#include "reference/error_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/simulated_kernel.hpp"

namespace attest {
namespace {

Problem decode_step(std::int64_t keys) {
  Problem p;
  p.model = {.num_q_heads = 4, .num_kv_heads = 1, .head_dim = 32, .v_head_dim = 32};
  p.pool = {.page_size = 64, .num_pages = keys / 64 + 1};
  p.requests = {{.sequence = 1, .committed = keys - 1, .new_tokens = 1}};
  return p;
}

struct Bounded {
  explicit Bounded(const Problem& problem, Recipe recipe = Recipe::normal)
      : source(problem, recipe, 2),
        meaning(attended(problem)),
        expected(reference_attention(meaning, source)) {}
  RowBound bound(const NumericsProfile& profile) const {
    return row_bound(error_model(profile, source.problem().model, expected), expected, 0, 0);
  }
  double first(const NumericsProfile& profile) const {
    return bound(profile).of(expected.abs_v[0], expected.out[0]);
  }
  TensorSource source;
  Attended meaning;
  Expected expected;
};

TEST(ErrorBound, IsOutputRoundingForOneKey) {
  // One key: the weight is 1 whatever the score, P = 1 is exact, but a profile cannot know that.
  const Bounded one(decode_step(1));
  NumericsProfile profile;
  profile.p_dtype = Dtype::f32;
  const double o = std::abs(one.expected.out[0]);
  EXPECT_GT(one.first(profile), 0x1p-8 * o);
  EXPECT_LT(one.first(profile), 1.05 * 0x1p-8 * o);
}

TEST(ErrorBound, GrowsWithEveryDeclaredRounding) {
  const Bounded b(decode_step(500));
  NumericsProfile fine;
  fine.p_dtype = Dtype::f32;
  fine.exp_relative_error = 1e-7;
  const auto with = [&](auto change) {
    NumericsProfile profile = fine;
    change(profile);
    return b.first(profile);
  };
  const double base = b.first(fine);
  EXPECT_GT(with([](auto& p) { p.p_dtype = Dtype::bf16; }), base + 0x1p-8 * b.expected.abs_v[0]);
  EXPECT_GT(with([](auto& p) { p.exp_relative_error = 1e-3; }), base);
  EXPECT_GT(with([](auto& p) { p.denominator_sums_rounded_p = true; }), base);
  EXPECT_GT(with([](auto& p) { p.kv_splits = 8; }), base);
  EXPECT_GT(with([](auto& p) { p.q_scaled_in_input_dtype = true; }), base)
      << "q * scale is rounded and the reference did not replay it";
}

TEST(ErrorBound, NeedsNoRoomForAReplayedRoundingOfQ) {
  const Problem p = decode_step(500);
  Bounded b(p);
  NumericsProfile plain;
  NumericsProfile rounds = plain;
  rounds.q_scaled_in_input_dtype = true;
  const double unreplayed = b.first(rounds);
  b.expected = reference_attention(b.meaning, b.source, {.round_scaled_q = true});
  EXPECT_LT(b.first(rounds), 0.9 * unreplayed);
  EXPECT_GT(b.first(plain), b.first(rounds)) << "the other way round is not replayed either";
}

TEST(ErrorBound, FollowsPIntoQsDtypeWhereTheProfileSaysSo) {
  Problem p = decode_step(300);
  p.model.q_dtype = Dtype::f16;
  const Bounded b(p);
  NumericsProfile profile;
  const double in_bf16 = b.first(profile);
  profile.p_follows_q_dtype = true;
  EXPECT_LT(b.first(profile), in_bf16);
}

TEST(ErrorBound, LeavesRoomForInputsBelowTheNormalRangeWhereTheyAreFlushed) {
  Problem p = decode_step(300);
  p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = Dtype::f16;
  const Bounded b(p);
  NumericsProfile profile;
  const double kept = b.first(profile);
  profile.denormals_are_zero = true;
  EXPECT_GT(b.first(profile), kept + 0x1p-14);
}

TEST(ErrorBound, StaysFiniteAndTrivialWhereScoresCannotBeResolved) {
  Problem p = decode_step(300);
  p.model.softmax_scale = 1e7;
  const Bounded b(p);
  const double limit = b.first({});
  EXPECT_LE(limit, (std::abs(b.expected.out[0]) + b.expected.max_abs_v[0]) * 1.02);
  EXPECT_GT(limit, b.expected.max_abs_v[0]);
}

TEST(ErrorBound, IsZeroWithoutAKey) {
  Bounded b(decode_step(3));
  b.meaning.rows[0].keys.clear();
  b.expected = reference_attention(b.meaning, b.source);
  EXPECT_EQ(b.first({}), 0);
  EXPECT_EQ(b.bound({}).lse, 0);
}

TEST(ErrorBound, CoversALongPlainSumOfEqualTerms) {
  // The systematic case: 0.1 added in float32 errs by n u / 6 relatively, far above sqrt(n) u.
  constexpr int n = 1 << 20;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += 0.1F;
  const auto value = static_cast<double>(0.1F);
  const double error = std::abs(static_cast<double>(sum) / n - value);
  Expected uniform;
  uniform.rows = uniform.heads = uniform.dim = 1;
  uniform.visible = {n};
  uniform.lse = {std::log(n)};
  uniform.max_abs_v = {value};
  for (auto* zero : {&uniform.score_envelope, &uniform.max_abs_score, &uniform.max_score,
                     &uniform.max_or_sink, &uniform.input_envelope}) {
    *zero = {0};
  }
  Model model;
  model.out_dtype = Dtype::f32;
  NumericsProfile profile;
  profile.p_dtype = Dtype::f32;
  const double limit =
      row_bound(error_model(profile, model, uniform), uniform, 0, 0).of(value, value);
  EXPECT_LT(error, limit);
  EXPECT_LT(limit, 15 * error);
  EXPECT_GT(error, 8 * 0x1p-24 * std::sqrt(n) * value) << "so a sqrt(n) bound would be wrong";
}

TEST(ErrorBound, CoversF16WeightsBesideASinkThatTheMaximumStartsAt) {
  // 100 equal keys 13 below the sink: P is 38 steps of f16's smallest, and the sink is 1.
  constexpr double n = 100;
  constexpr double sink = 13;
  Expected row;
  row.rows = row.heads = row.dim = 1;
  row.visible = {100};
  row.lse = {sink + std::log(n * std::exp(-sink) + 1)};
  row.max_abs_v = {1};
  row.max_or_sink = {sink};
  for (auto* zero :
       {&row.score_envelope, &row.max_abs_score, &row.max_score, &row.input_envelope}) {
    *zero = {0};
  }
  Model model;
  model.out_dtype = Dtype::f32;
  NumericsProfile profile;
  profile.p_dtype = Dtype::f16;
  const auto limit = [&](double out) {
    return row_bound(error_model(profile, model, row), row, 0, 0).of(out, out);
  };
  const double p = decode(Dtype::f16, encode(Dtype::f16, static_cast<float>(std::exp(-sink))));
  const double exact = n * std::exp(-sink) / (n * std::exp(-sink) + 1);
  const double error = std::abs(p / std::exp(-sink) - 1) * exact;
  EXPECT_GT(error, 2 * limit(exact)) << "the sink joins finished sums: P is 1";
  profile.maximum_starts_at_sink = true;
  EXPECT_LT(error, limit(exact));
  EXPECT_LT(limit(exact), 20 * error);
}

TEST(ErrorBound, CoversAFactorOfTheSinkThatFloatCannotHold) {
  // exp(-93) is subnormal in f32: a kernel may as well return 0.
  Problem p = decode_step(1);
  p.model.sinks = true;
  p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = Dtype::f32;
  Bounded b(p);
  b.expected.max_or_sink[0] = b.expected.max_score[0] + 93;
  b.expected.lse[0] = b.expected.max_or_sink[0];
  const double exact = std::exp(-93) * b.expected.max_abs_v[0];
  EXPECT_GT(row_bound(error_model({}, p.model, b.expected), b.expected, 0, 0).of(exact, exact),
            exact);
}

TEST(ErrorBound, CoversAKernelThatTakesKeysOneByOneInAscendingOrder) {
  // Every key raises the maximum, so every key rescales the sums: the longest chain of roundings.
  Problem p = decode_step(2000);
  p.model.softmax_scale = 1;
  const TensorSource source(p, Recipe::normal, 9);
  Attended meaning = attended(p);
  std::vector<std::pair<double, std::int64_t>> order;
  for (std::int64_t j = 0; j < 2000; ++j) {
    Attended one = meaning;
    one.rows[0].keys = {{1, j, 1}};
    order.emplace_back(reference_attention(one, source, {.envelopes = false}).lse[0], j);
  }
  std::sort(order.begin(), order.end());
  Attended ascending = meaning;
  ascending.rows[0].keys.clear();
  for (const auto& [score, j] : order) ascending.rows[0].keys.push_back({1, j, 1});
  const SimulatedKernel kernel{.p_dtype = Dtype::f32, .tile = 1};
  p.model.out_dtype = Dtype::f32;
  const Output got = simulate(ascending, TensorSource(p, Recipe::normal, 9), kernel);
  const Expected expected = reference_attention(meaning, source);
  const ErrorModel model = error_model(profile_of(kernel), p.model, expected);
  const RowBound bound = row_bound(model, expected, 0, 0);
  for (std::size_t d = 0; d < 32; ++d) {
    EXPECT_LE(std::abs(static_cast<double>(got.values[d]) - expected.out[d]),
              bound.of(expected.abs_v[d], expected.out[d]));
  }
}

}  // namespace
}  // namespace attest
