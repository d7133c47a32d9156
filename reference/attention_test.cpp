#include "reference/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/naive.hpp"
#include "reference/random_problem.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Expected reference_of(const TensorSource& source, const ReferenceOptions& options = {}) {
  return reference_attention(attended(source.problem()), source, options);
}

/// Largest difference of a case, relative to sum w |v| (out) and to max(1, |lse|).
double worst_difference(const TensorSource& source, bool round_scaled_q) {
  const Expected e = reference_of(source, {.round_scaled_q = round_scaled_q});
  const NaiveResult n = naive_attention(source, round_scaled_q);
  const Attended meaning = attended(source.problem());
  double worst = 0;
  for (std::int64_t r = 0; r < e.rows; ++r) {
    if (meaning.rows[static_cast<std::size_t>(r)].expect != RowExpectation::value) continue;
    for (std::int64_t h = 0; h < e.heads; ++h) {
      const std::size_t i = e.row_index(r, h);
      const long double lse = std::abs(n.lse[i] - e.lse[i]) / std::max(1.0, std::abs(e.lse[i]));
      worst = std::max(worst, static_cast<double>(lse));
      for (std::int64_t d = 0; d < e.dim; ++d) {
        const std::size_t at = e.index(r, h, d);
        const double magnitude = std::max(1e-30, static_cast<double>(e.abs_v[at]));
        const auto off = static_cast<double>(std::abs(n.out[at] - e.out[at]));
        worst = std::isnan(off) ? infinity : std::max(worst, off / magnitude);
      }
    }
  }
  return worst;
}

/// One request over `keys` keys and one new token more.
Problem long_decode(std::int64_t keys) {
  Problem p;
  p.model.num_q_heads = 2;
  p.model.head_dim = p.model.v_head_dim = 16;
  p.pool = {.page_size = 64, .num_pages = keys / 64 + 1};
  p.requests = {{.sequence = 1, .committed = keys - 1, .new_tokens = 1}};
  return p;
}

TEST(Reference, AgreesWithTheNaiveLoopOnEveryFeature) {
  double worst = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const TensorSource source = random_source(i);
    ASSERT_EQ(problem_error(source.problem()), std::nullopt) << "case " << i;
    const double off = worst_difference(source, i % 5 == 0);
    ASSERT_LE(off, 1e-13) << "case " << i << ": " << describe(source.problem()) << ", "
                          << name(source.recipe());
    worst = std::max(worst, off);
  }
  RecordProperty("worst_difference_1e-15", static_cast<int>(worst * 1e15));
}

TEST(Reference, AgreesWithTheNaiveLoopWhereKeysComeInSeveralParts) {
  for (const std::int64_t keys : {513, 2048, 2049, 7001}) {
    EXPECT_LE(worst_difference({long_decode(keys), Recipe::normal, 3}, false), 1e-13) << keys;
    EXPECT_LE(worst_difference({long_decode(keys), Recipe::recall, 3}, false), 1e-13) << keys;
  }
}

TEST(Reference, GivesTheSameBitsForAnyNumberOfThreads) {
  Problem p = long_decode(5000);
  p.requests.push_back({.sequence = 2, .committed = 3000, .new_tokens = 300});
  p.pool.num_pages *= 2;
  const TensorSource source(p, Recipe::normal, 5);
  const Expected one = reference_of(source, {.threads = 1});
  for (const int threads : {2, 3, 7}) {
    const Expected many = reference_of(source, {.threads = threads});
    EXPECT_EQ(many.out, one.out);
    EXPECT_EQ(many.w2v2, one.w2v2);
  }
}

TEST(Reference, ReturnsTheSumsOfTheDefinition) {
  Problem p = long_decode(2500);
  p.model.sinks = true;
  p.model.v_descale = 0.5;
  const TensorSource source(p, Recipe::features, 4);
  const Expected e = reference_of(source);
  std::vector<double> q(16);
  std::vector<double> k(16);
  std::vector<double> v(16);
  source.q_row(0, 1, q);
  std::vector<double> abs_v(16), w2v(16), w2v2(16);
  double w2 = 0;
  double envelope = 0;
  double largest = -infinity;
  double largest_abs = 0;
  for (std::int64_t j = 0; j < 2500; ++j) {
    source.k_row({1, j}, 0, k);
    source.v_row({1, j}, 0, v);
    double score = 0;
    double absolute = 0;
    for (std::size_t d = 0; d < 16; ++d) {
      score += 0.125 * q[d] * k[d];
      absolute += 0.125 * std::abs(q[d] * k[d]);
    }
    const double w = std::exp(score - e.lse[1]);
    w2 += w * w;
    envelope = std::max(envelope, absolute);
    largest = std::max(largest, score);
    largest_abs = std::max(largest_abs, std::abs(score));
    for (std::size_t d = 0; d < 16; ++d) {
      abs_v[d] += w * std::abs(0.5 * v[d]);
      w2v[d] += w * w * 0.5 * v[d];
      w2v2[d] += w * w * 0.25 * v[d] * v[d];
    }
  }
  EXPECT_NEAR(e.w2[1], w2, 1e-5 * w2);
  EXPECT_NEAR(e.max_score[1], largest, 1e-12);
  EXPECT_NEAR(e.max_abs_score[1], largest_abs, 1e-12);
  EXPECT_GE(e.score_envelope[1], envelope);
  EXPECT_LE(e.score_envelope[1], 4 * envelope);
  for (std::size_t d = 0; d < 16; ++d) {
    const std::size_t i = 16 + d;
    EXPECT_NEAR(e.abs_v[i], abs_v[d], 1e-5 * abs_v[d]);
    EXPECT_NEAR(e.w2v2[i], w2v2[d], 1e-5 * w2v2[d]);
    EXPECT_NEAR(e.w2v[i], w2v[d], 1e-5 * std::sqrt(w2 * w2v2[d]));
  }
}

TEST(Reference, FindsTheLargestScoresInWhicheverPartTheyLie) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const TensorSource source(long_decode(6500), Recipe::normal, seed);
    const Expected e = reference_of(source, {.envelopes = false});
    std::vector<double> q(16);
    std::vector<double> k(16);
    source.q_row(0, 0, q);
    double largest = -infinity;
    double largest_abs = 0;
    for (std::int64_t j = 0; j < 6500; ++j) {
      source.k_row({1, j}, 0, k);
      const double score = 0.125 * std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
      largest = std::max(largest, score);
      largest_abs = std::max(largest_abs, std::abs(score));
    }
    EXPECT_NEAR(e.max_score[0], largest, 1e-12) << seed;
    EXPECT_NEAR(e.max_abs_score[0], largest_abs, 1e-12) << seed;
  }
}

TEST(Reference, GivesARowTheSameWhateverOtherRowsSee) {
  const Problem p = [] {
    Problem many = long_decode(1100);
    many.requests[0].new_tokens = 4;
    return many;
  }();
  const TensorSource source(p, Recipe::normal, 2);
  Attended meaning = attended(p);
  meaning.rows[0].keys = {{1, 511, 1}};    // is the last key of the first block
  meaning.rows[1].keys = {{1, 512, 1}};    // is the first key of the second
  meaning.rows[2].keys = {{1, 100, 300}};  // lies inside one
  const Expected all = reference_attention(meaning, source);
  for (std::int64_t r = 0; r < 4; ++r) {
    const Expected alone = reference_attention(meaning, source, {.only_rows = {r}});
    for (std::int64_t h = 0; h < 2; ++h) {
      const std::size_t i = all.row_index(r, h);
      EXPECT_NEAR(all.max_score[i], alone.max_score[i], 1e-12) << r;
      EXPECT_NEAR(all.max_abs_score[i], alone.max_abs_score[i], 1e-12) << r;
      EXPECT_NEAR(all.score_envelope[i], alone.score_envelope[i], 1e-12) << r;
      EXPECT_EQ(all.max_abs_v[i], alone.max_abs_v[i]) << r;
      EXPECT_NEAR(all.lse[i], alone.lse[i], 1e-12) << r;
      EXPECT_NEAR(all.out[all.index(r, h, 7)], alone.out[all.index(r, h, 7)], 1e-13) << r;
    }
  }
}

TEST(Reference, LeavesOutTheSumsWhenNotAsked) {
  const TensorSource source(long_decode(100), Recipe::normal, 1);
  const Expected with = reference_of(source);
  const Expected without = reference_of(source, {.envelopes = false});
  EXPECT_TRUE(without.abs_v.empty());
  EXPECT_TRUE(without.w2.empty());
  EXPECT_EQ(without.out, with.out);
}

TEST(Reference, ComputesOnlyTheRowsAskedFor) {
  Problem p = long_decode(300);
  p.requests[0].new_tokens = 5;
  const TensorSource source(p, Recipe::normal, 1);
  const Expected all = reference_of(source);
  const Expected some = reference_of(source, {.only_rows = {3, 1}});
  EXPECT_EQ(some.computed, (std::vector<std::uint8_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ(some.visible, (std::vector<std::int64_t>{0, 301, 0, 303, 0}));
  EXPECT_EQ(some.out[some.index(0, 0, 0)], 0);
  for (std::int64_t d = 0; d < 16; ++d) {
    EXPECT_NEAR(some.out[some.index(3, 1, d)], all.out[all.index(3, 1, d)], 1e-14);
  }
}

TEST(Reference, GivesZeroAndNoLogSumExpWithoutAVisibleKey) {
  Problem p = long_decode(10);
  p.model.sinks = true;
  const TensorSource source(p, Recipe::normal, 1);
  Attended meaning = attended(p);
  meaning.rows[0].keys.clear();
  const Expected e = reference_attention(meaning, source);
  EXPECT_EQ(e.out, std::vector<double>(32, 0.0));
  EXPECT_EQ(e.lse, std::vector<double>(2, -infinity));
  EXPECT_EQ(e.visible[0], 0);
}

TEST(Reference, IsNaNExactlyWhereARowReadsASlotWithoutContent) {
  Problem p = long_decode(10);
  p.requests[0].new_tokens = 2;
  const TensorSource source(p, Recipe::normal, 1);
  Attended meaning = attended(p);
  meaning.rows[1].keys.insert(meaning.rows[1].keys.begin(), {unknown_sequence, 77, 1});
  const Expected e = reference_attention(meaning, source);
  const Expected clean = reference_of(source);
  EXPECT_TRUE(std::equal(e.out.begin(), e.out.begin() + 32, clean.out.begin()));
  EXPECT_TRUE(std::all_of(e.out.begin() + 32, e.out.end(), [](double x) { return std::isnan(x); }));
  EXPECT_TRUE(std::isnan(e.lse[3]));
}

TEST(Reference, IsNaNForARowThatReadsNothingElse) {
  const TensorSource source(long_decode(10), Recipe::normal, 1);
  Attended meaning = attended(source.problem());
  meaning.rows[0].keys = {{unknown_sequence, 0, 5}};
  EXPECT_TRUE(std::isnan(reference_attention(meaning, source).out[0]));
}

TEST(Reference, CountsAKeyReadTwiceTwice) {
  const TensorSource source(long_decode(10), Recipe::normal, 1);
  const auto sum_over = [&](std::vector<KeyRun> keys) {
    Attended meaning = attended(source.problem());
    meaning.rows[0].keys = std::move(keys);
    return std::exp(reference_attention(meaning, source).lse[0]);
  };
  const double twice = sum_over({{1, 3, 1}, {1, 3, 1}, {1, 4, 1}});
  EXPECT_NEAR(twice, 2 * sum_over({{1, 3, 1}}) + sum_over({{1, 4, 1}}), 1e-12 * twice);
}

TEST(Reference, DoesNotMindHeadsThatNoKvHeadServes) {
  const TensorSource source(long_decode(10), Recipe::normal, 1);
  Attended meaning = attended(source.problem());
  meaning.num_kv_heads = 4;  // more than q heads
  const Expected e = reference_attention(meaning, source);
  EXPECT_TRUE(std::isnan(e.out[0]));
}

}  // namespace
}  // namespace attest
