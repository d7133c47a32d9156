#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "memory/test_support.hpp"

namespace attest {
namespace {

/// Sink weight of every (row, head), and the spread of sink - lse.
struct Sinks {
  int rows = 0;
  int felt = 0;  ///< the sink takes between 2 % and 98 % of the row
  double mean_distance = 0;
};

Sinks sinks_of(const TensorSource& source) {
  const Attended meaning = attended(source.problem());
  Sinks seen;
  for (std::size_t row = 0; row < meaning.rows.size(); ++row) {
    for (std::int64_t head = 0; head < source.problem().model.num_q_heads; ++head) {
      const double lse = attend(source, meaning, static_cast<std::int64_t>(row), head).lse;
      const double distance = source.sink(head) - lse;
      const double weight = 1 / (1 + std::exp(-distance));
      ++seen.rows;
      seen.felt += weight > 0.02 && weight < 0.98 ? 1 : 0;
      seen.mean_distance += distance;
    }
  }
  seen.mean_distance /= seen.rows;
  return seen;
}

TEST(Features, HasSinksOfTheSizeOfTheLogSumExp) {
  for (const double softcap : {0.0, 20.0, 50.0}) {
    for (const std::int64_t length : {20, 300, 3000}) {
      Problem p = verify_problem({length}, 2);
      p.model.num_q_heads = 32;
      p.model.sinks = true;
      p.model.softcap = softcap;
      const Sinks seen = sinks_of(TensorSource(p, Recipe::features, 1));
      EXPECT_GT(seen.felt, seen.rows / 3) << softcap << ' ' << length;
      EXPECT_LT(std::fabs(seen.mean_distance), 4) << softcap << ' ' << length;
    }
  }
}

TEST(Features, HasOrdinarySinksInTheOtherRecipes) {
  Problem p = verify_problem({3000}, 1);
  p.model.num_q_heads = 64;
  p.model.sinks = true;
  const TensorSource source(p, Recipe::normal, 1);
  double sum = 0;
  double squares = 0;
  for (std::int64_t head = 0; head < 64; ++head) {
    sum += source.sink(head);
    squares += double{source.sink(head)} * source.sink(head);
    const float rounded = decode(Dtype::bf16, encode(Dtype::bf16, source.sink(head)));
    EXPECT_EQ(source.sink(head), rounded);
  }
  EXPECT_NEAR(sum / 64, 0, 0.5);
  EXPECT_NEAR(squares / 64, 1, 0.6);
  p.model.sinks = false;
  EXPECT_EQ(TensorSource(p, Recipe::normal, 1).sink(0), 0);
}

TEST(Features, ReachesTheSoftcap) {
  Problem p = verify_problem({300}, 4);
  p.model.softcap = 50;
  const TensorSource source(p, Recipe::features, 1);
  p.model.softcap = 0;
  const TensorSource plain(p, Recipe::features, 1);
  std::vector<double> q(64);
  std::vector<double> k(64);
  int beyond = 0;
  for (std::int64_t t = 0; t < 300; ++t) {
    source.q_row(0, 0, std::span(q));
    source.k_row({1, t}, 0, std::span(k));
    double dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot += q[d] * k[d];
    beyond += std::fabs(dot * 0.125) > 25 ? 1 : 0;  // tanh(x / 50) bends here
  }
  EXPECT_GT(beyond, 10);
  std::vector<double> small(64);
  plain.q_row(0, 0, std::span(small));
  for (std::size_t d = 0; d < q.size(); ++d) EXPECT_EQ(q[d], small[d] * 16);
}

TEST(Features, DominatesWithTheKeysOnTheWindowsEdge) {
  for (const double softcap : {0.0, 50.0}) {
    Problem p = verify_problem({300, 40}, 4);
    p.model.window = 30;
    p.model.softcap = softcap;
    const TensorSource source(p, Recipe::features, 2);
    const Attended meaning = attended(p);
    int inside = 0;
    int outside = 0;
    for (const Plant& plant : source.plants()) {
      const AttendedRow& row = meaning.rows[static_cast<std::size_t>(plant.row)];
      const std::int64_t first = row.keys.front().first;
      EXPECT_EQ(plant.key.position, plant.decoy ? first - 1 : first);
      EXPECT_EQ(sees(row, plant.key), !plant.decoy);
      Attended one_more = meaning;
      AttendedRow& wrong = one_more.rows[static_cast<std::size_t>(plant.row)];
      wrong.keys.front().first -= plant.decoy ? 1 : 0;
      wrong.keys.front().count += plant.decoy ? 1 : 0;
      const RowAttention seen = attend(source, one_more, plant.row, plant.q_head);
      EXPECT_GT(seen.weights.front(), 0.2) << softcap << ' ' << plant.row;
      (plant.decoy ? outside : inside) += 1;
    }
    EXPECT_GE(inside, 4);
    EXPECT_GE(outside, 4);
  }
}

TEST(Shifted, MovesEveryLogitByOneLargeNumber) {
  std::set<int> shifts;
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::fp8_e4m3fnuz}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Problem p = verify_problem({40}, 2);
      p.model.q_dtype = p.model.kv_dtype = dtype;
      if (seed % 2 == 0) p.model.softmax_scale = -p.model.softmax_scale;
      const TensorSource source(p, Recipe::shifted, seed);
      const TensorSource plain(p, Recipe::normal, seed);
      std::vector<double> q(64), k(64), same(64);
      source.q_row(1, 3, std::span(q));
      source.k_row({1, 7}, 1, std::span(k));
      const double shift = q[63] * k[63] * p.model.softmax_scale;
      const double hundreds = std::round(shift / 100);
      EXPECT_NEAR(shift, 100 * hundreds, 0.14 * std::fabs(shift)) << name(dtype) << ' ' << seed;
      shifts.insert(static_cast<int>(hundreds));
      source.k_row({1, 41}, 0, std::span(same));
      EXPECT_EQ(same[63], k[63]);
      plain.k_row({1, 41}, 0, std::span(k));
      same[63] = k[63];
      EXPECT_EQ(same, k);  // nothing else moves
    }
  }
  EXPECT_EQ(shifts, (std::set<int>{-3, -2, -1, 1, 2, 3}));
}

}  // namespace
}  // namespace attest
