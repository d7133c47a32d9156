#include "memory/tensor_source.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "memory/test_support.hpp"

namespace attest {
namespace {

using Bytes = std::vector<std::byte>;

Problem mla_problem() {
  Problem p = verify_problem({50}, 2);
  p.model = {.num_q_heads = 16, .num_kv_heads = 1, .head_dim = 576, .v_head_dim = 512};
  p.model.softmax_scale = 0.0721688;
  p.model.mla = true;
  return p;
}

TEST(TensorSource, WritesTheSameBitsForever) {
  Problem p = verify_problem({40, 23}, 3);
  p.model.window = 20;
  p.model.sinks = true;
  EXPECT_EQ(bits_of(TensorSource(p, Recipe::normal, 1)), 4845807323920030906ULL);
  EXPECT_EQ(bits_of(TensorSource(p, Recipe::recall, 1)), 3019088085309156044ULL);
  EXPECT_EQ(bits_of(TensorSource(p, Recipe::needle, 1)), 7886370447141605851ULL);
  EXPECT_EQ(bits_of(TensorSource(p, Recipe::features, 1)), 356201546008159015ULL);
}

TEST(TensorSource, DependsOnTheSeedAndTheRecipeAlone) {
  const Problem p = verify_problem({40}, 3);
  for (const Recipe recipe : {Recipe::normal, Recipe::recall, Recipe::needle, Recipe::features}) {
    const std::uint64_t bits = bits_of(TensorSource(p, recipe, 7));
    EXPECT_EQ(bits_of(TensorSource(p, recipe, 7)), bits) << name(recipe);
    EXPECT_NE(bits_of(TensorSource(p, recipe, 8)), bits) << name(recipe);
    Problem moved = p;
    moved.pool.num_pages = 50;
    moved.pool.placement = Placement::high;
    EXPECT_EQ(bits_of(TensorSource(moved, recipe, 7, {Poison::loud, true})), bits);
  }
}

TEST(TensorSource, IsStandardNormalInTheNormalRecipe) {
  const TensorSource source(verify_problem({2000}, 4), Recipe::normal, 1);
  std::vector<double> row(64);
  for (const bool v : {false, true}) {
    double sum = 0;
    double squares = 0;
    double neighbours = 0;
    for (std::int64_t t = 0; t < 2000; ++t) {
      v ? source.v_row({1, t}, 0, std::span(row)) : source.k_row({1, t}, 0, std::span(row));
      for (std::size_t d = 0; d < row.size(); ++d) {
        sum += row[d];
        squares += row[d] * row[d];
        neighbours += row[d] * row[(d + 1) % row.size()];
      }
    }
    constexpr double n = 2000 * 64;
    EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
    EXPECT_NEAR(squares / n, 1, 6 / std::sqrt(n) + 1e-3);
    EXPECT_NEAR(neighbours / n, 0, 4 / std::sqrt(n));
  }
}

TEST(TensorSource, GivesEveryRowAndHeadItsOwnValues) {
  const TensorSource source(verify_problem({40, 40}, 3), Recipe::normal, 1);
  std::vector<Bytes> rows;
  const auto add = [&](auto&& write) { write(std::span(rows.emplace_back(128))); };
  add([&](std::span<std::byte> out) { source.q_row(0, 0, out); });
  add([&](std::span<std::byte> out) { source.q_row(1, 0, out); });
  add([&](std::span<std::byte> out) { source.q_row(3, 0, out); });
  add([&](std::span<std::byte> out) { source.q_row(0, 1, out); });
  add([&](std::span<std::byte> out) { source.k_row({1, 5}, 0, out); });
  add([&](std::span<std::byte> out) { source.k_row({1, 6}, 0, out); });
  add([&](std::span<std::byte> out) { source.k_row({2, 5}, 0, out); });
  add([&](std::span<std::byte> out) { source.k_row({1, 5}, 1, out); });
  add([&](std::span<std::byte> out) { source.k_row({1, -6}, 0, out); });
  add([&](std::span<std::byte> out) { source.v_row({1, 5}, 0, out); });
  for (std::size_t a = 0; a < rows.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(rows[a], rows[b]) << a << ' ' << b;
  }
}

TEST(TensorSource, FollowsTokensThroughBatches) {
  const Problem p = verify_problem({40, 23}, 3);
  Problem swapped = p;
  std::swap(swapped.requests[0], swapped.requests[1]);
  const TensorSource a(p, Recipe::normal, 1);
  const TensorSource b(swapped, Recipe::normal, 1);
  Bytes x(128);
  Bytes y(128);
  a.q_row(1, 5, x);
  b.q_row(4, 5, y);
  EXPECT_EQ(x, y);
  // A decode step at the same position has the query of the verify row.
  Problem decode = verify_problem({41}, 1);
  TensorSource(decode, Recipe::normal, 1).q_row(0, 5, y);
  EXPECT_EQ(x, y);
}

TEST(TensorSource, NamesTheTokenOfARow) {
  const TensorSource source(verify_problem({40, 23}, 3), Recipe::normal, 1);
  EXPECT_EQ(source.token_of_row(0), (ContentKey{1, 40}));
  EXPECT_EQ(source.token_of_row(2), (ContentKey{1, 42}));
  EXPECT_EQ(source.token_of_row(3), (ContentKey{2, 23}));
  EXPECT_EQ(source.token_of_row(6), std::nullopt);
  EXPECT_EQ(source.token_of_row(-1), std::nullopt);
}

TEST(TensorSource, SkipsRequestsWithoutNewTokens) {
  Problem p = verify_problem({40, 23, 9}, 2);
  p.requests[1].new_tokens = 0;
  const TensorSource source(p, Recipe::normal, 1);
  EXPECT_EQ(source.token_of_row(2), (ContentKey{3, 9}));
}

TEST(TensorSource, PadsWithOrdinaryFiniteValues) {
  const TensorSource source(verify_problem({40}, 2), Recipe::recall, 1);
  std::vector<double> row(64);
  for (std::int64_t r = 2; r < 6; ++r) {
    source.q_row(r, 0, std::span(row));
    for (const double value : row) EXPECT_LT(std::fabs(value), 4);
  }
}

TEST(TensorSource, TakesVFromTheHeadOfTheKeyRowInMla) {
  for (const Recipe recipe :
       {Recipe::normal, Recipe::recall, Recipe::needle, Recipe::features, Recipe::shifted}) {
    const TensorSource source(mla_problem(), recipe, 1);
    Bytes k(1152);
    Bytes v(1024);
    for (std::int64_t t = 0; t < 52; ++t) {
      source.k_row({1, t}, 0, k);
      source.v_row({1, t}, 0, v);
      EXPECT_EQ(std::memcmp(k.data(), v.data(), v.size()), 0) << name(recipe) << ' ' << t;
    }
  }
}

TEST(TensorSource, DecodesItsOwnBits) {
  for (const Dtype dtype :
       {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz}) {
    Problem p = verify_problem({40}, 2);
    p.model.q_dtype = p.model.kv_dtype = dtype;
    const std::size_t step = size_bytes(dtype);
    for (const Recipe recipe : {Recipe::normal, Recipe::recall, Recipe::needle, Recipe::shifted}) {
      const TensorSource source(p, recipe, 3);
      Bytes bits(64 * step);
      std::vector<double> values(64);
      const auto check = [&] {
        for (std::size_t d = 0; d < 64; ++d) {
          std::uint32_t element = 0;
          std::memcpy(&element, bits.data() + d * step, step);
          EXPECT_EQ(decode(dtype, element), values[d]) << name(dtype);
          EXPECT_TRUE(std::isfinite(values[d]));
        }
      };
      source.q_row(1, 3, bits);
      source.q_row(1, 3, std::span(values));
      check();
      for (std::int64_t t = 0; t < 42; ++t) {
        source.k_row({1, t}, 1, bits);
        source.k_row({1, t}, 1, std::span(values));
        check();
        source.v_row({1, t}, 1, bits);
        source.v_row({1, t}, 1, std::span(values));
        check();
      }
    }
  }
}

TEST(TensorSource, RefusesADestinationOfAnotherLength) {
  const TensorSource source(verify_problem({40}, 2), Recipe::normal, 1);
  Bytes bytes(127);
  std::vector<double> values(65);
  EXPECT_THROW(source.q_row(0, 0, bytes), std::invalid_argument);
  EXPECT_THROW(source.k_row({1, 0}, 0, bytes), std::invalid_argument);
  EXPECT_THROW(source.v_row({1, 0}, 0, std::span(values)), std::invalid_argument);
}

TEST(TensorSource, SurvivesDegenerateModels) {
  for (const double scale : {0.0, 1e-30, 1e30}) {
    for (const Recipe recipe :
         {Recipe::recall, Recipe::needle, Recipe::features, Recipe::shifted}) {
      Problem p = verify_problem({3}, 2);
      p.model.softmax_scale = scale;
      p.model.head_dim = p.model.v_head_dim = 1;
      const TensorSource source(p, recipe, 1);
      std::vector<double> one(1);
      source.q_row(0, 0, std::span(one));
      EXPECT_TRUE(std::isfinite(one[0])) << name(recipe);
      for (const Plant& plant : source.plants()) {
        source.k_row(plant.key, plant.kv_head, std::span(one));
        EXPECT_TRUE(std::isfinite(one[0])) << name(recipe);
      }
    }
  }
}

TEST(TensorSource, NamesItsRecipes) {
  for (const Recipe recipe : {Recipe::normal, Recipe::recall, Recipe::needle, Recipe::features,
                              Recipe::shifted, Recipe::normal_20, Recipe::uniform, Recipe::positive,
                              Recipe::small_int, Recipe::sparse_int}) {
    EXPECT_EQ(recipe_from_name(name(recipe)), recipe);
  }
  EXPECT_EQ(recipe_from_name("gaussian"), std::nullopt);
}

}  // namespace
}  // namespace attest
