#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "memory/test_support.hpp"

namespace attest {
namespace {

struct Weights {
  double smallest = 1;  ///< of one needle
  double largest = 0;
  double all_least = 1;  ///< of a row's needles together
  double all_most = 0;
};

Weights needle_weights(const TensorSource& source) {
  const Attended meaning = attended(source.problem());
  std::set<std::pair<std::int64_t, std::int64_t>> needles;
  for (const Plant& plant : source.plants()) {
    needles.insert({plant.key.sequence, plant.key.position});
  }
  Weights seen;
  for (std::size_t row = 0; row < meaning.rows.size(); ++row) {
    for (std::int64_t head = 0; head < source.problem().model.num_q_heads; ++head) {
      const RowAttention attention = attend(source, meaning, static_cast<std::int64_t>(row), head);
      double all = 0;
      for (std::size_t j = 0; j < attention.keys.size(); ++j) {
        const ContentKey& key = attention.keys[j];
        if (!needles.contains({key.sequence, key.position})) continue;
        all += attention.weights[j];
        seen.smallest = std::min(seen.smallest, attention.weights[j]);
        seen.largest = std::max(seen.largest, attention.weights[j]);
      }
      seen.all_least = std::min(seen.all_least, all);
      seen.all_most = std::max(seen.all_most, all);
    }
  }
  return seen;
}

void expect_shares(const Problem& p) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Weights seen = needle_weights(TensorSource(p, Recipe::needle, seed));
    EXPECT_GT(seen.smallest, 0.004);
    EXPECT_LT(seen.largest, 0.5);
    EXPECT_GT(seen.all_least, 0.3);
    EXPECT_LT(seen.all_most, 0.97);
  }
}

TEST(Needle, GivesEveryNeedleAboutATenthOfTheWeight) {
  expect_shares(verify_problem({600, 90}, 4));
  expect_shares(verify_problem({3000}, 1));
}

TEST(Needle, HoldsForOtherModels) {
  Problem p = verify_problem({500}, 4);
  p.model.head_dim = p.model.v_head_dim = 128;
  p.model.softmax_scale = 0.0883883;
  p.model.q_dtype = p.model.kv_dtype = Dtype::fp8_e4m3fn;
  p.model.k_descale = 0.5;
  expect_shares(p);
  p.model = {.num_q_heads = 16, .num_kv_heads = 1, .head_dim = 576, .v_head_dim = 512};
  p.model.softmax_scale = 0.0721688;
  p.model.mla = true;
  expect_shares(p);
}

TEST(Needle, MarksThePlacesThatBreak) {
  Problem p = verify_problem({600}, 4);
  std::set<std::int64_t> always;
  std::set<std::int64_t> ever;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const TensorSource source(p, Recipe::needle, seed);
    std::set<std::int64_t> here;
    for (const Plant& plant : source.plants()) here.insert(plant.key.position);
    ever.insert(here.begin(), here.end());
    if (seed == 0) always = here;
    std::erase_if(always, [&](std::int64_t at) { return !here.contains(at); });
  }
  for (const std::int64_t at : {0, 598, 599, 600, 601, 602, 603}) EXPECT_TRUE(always.contains(at));
  EXPECT_LT(always.size(), 9U);
  const auto page_edges = std::count_if(
      ever.begin(), ever.end(), [](std::int64_t at) { return at % 16 == 0 || at % 16 == 15; });
  EXPECT_GT(page_edges, 20);
}

TEST(Needle, MarksBothSidesOfTheWindowsEdge) {
  Problem p = verify_problem({600}, 2);
  p.model.window = 100;
  const TensorSource source(p, Recipe::needle, 1);
  std::set<std::int64_t> here;
  for (const Plant& plant : source.plants()) here.insert(plant.key.position);
  for (const std::int64_t at : {500, 501, 502, 503}) EXPECT_TRUE(here.contains(at)) << at;
  expect_shares(p);
}

TEST(Needle, MovesTheOutputWhenOneIsLost) {
  const Problem p = verify_problem({3000}, 2);
  const TensorSource source(p, Recipe::needle, 3);
  Attended meaning = attended(p);
  const RowAttention right = attend(source, meaning, 1, 0);
  ASSERT_EQ(meaning.rows[1].keys.size(), 1U);
  meaning.rows[1].keys[0].count -= 1;  // the row's own token
  const RowAttention wrong = attend(source, meaning, 1, 0);
  double moved = 0;
  for (std::size_t d = 0; d < right.out.size(); ++d) {
    moved = std::max(moved, std::fabs(right.out[d] - wrong.out[d]));
  }
  EXPECT_GT(moved, 0.1);
}

TEST(Needle, TellsRowsAndHeadsApart) {
  const TensorSource source(verify_problem({100}, 2), Recipe::needle, 3);
  std::vector<std::byte> a(128);
  std::vector<std::byte> b(128);
  source.q_row(0, 0, a);
  source.q_row(1, 0, b);
  EXPECT_NE(a, b);
  source.q_row(0, 1, b);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace attest
