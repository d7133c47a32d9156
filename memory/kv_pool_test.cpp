#include "memory/kv_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "memory/tensor_layout.hpp"
#include "memory/test_support.hpp"

namespace attest {
namespace {

constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

TensorMeta view_of(const Problem& p, std::int64_t dim) {
  return contiguous(p.model.kv_dtype,
                    {p.pool.num_pages, p.pool.page_size, p.model.num_kv_heads, dim});
}

/// What one row of a pool holds, as the tests see it.
struct Row {
  std::vector<std::uint32_t> bits;
  bool all(std::uint32_t value) const {
    return std::all_of(bits.begin(), bits.end(), [&](std::uint32_t b) { return b == value; });
  }
};

Row row_at(const KvPool& pool, const PoolLayout& layout, std::int64_t slot, std::int64_t head) {
  const std::size_t step = size_bytes(layout.dtype);
  const std::byte* from =
      pool.base() +
      static_cast<std::size_t>(layout.offset(slot) + head * layout.head_stride) * step;
  Row row;
  for (std::int64_t d = 0; d < layout.dim; ++d, from += step) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, step);
    row.bits.push_back(bits);
  }
  return row;
}

Row expected_row(const TensorSource& source, PoolHalf half, ContentKey key, std::int64_t head) {
  const Model& model = source.problem().model;
  const std::int64_t dim = half == PoolHalf::k ? model.head_dim : model.v_head_dim;
  const std::size_t step = size_bytes(model.kv_dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dim) * step);
  half == PoolHalf::k ? source.k_row(key, head, bytes) : source.v_row(key, head, bytes);
  Row row;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, step);
    row.bits.push_back(bits);
  }
  return row;
}

/// Every slot of the pool holds what the slot map says, or the right poison.
void expect_whole_pool(const TensorSource& source, PoolHalf half, const TensorMeta& meta) {
  const KvPool pool(source, half, meta, Stored::committed_and_new);
  const Problem& p = source.problem();
  const PoolLayout layout = pool_layout(meta, p.pool.page_size, "pool");
  const auto contents = contents_by_slot(p, source.slots());
  std::vector<bool> used(static_cast<std::size_t>(p.pool.num_pages));
  for (const auto& [slot, key] : contents) {
    used[static_cast<std::size_t>(slot / p.pool.page_size)] = true;
  }
  const Dtype dtype = p.model.kv_dtype;
  const Poison poison = source.poison().poison;
  const Poison in_tail =
      half == PoolHalf::v && !source.poison().nan_in_v_tail ? Poison::loud : poison;
  for (std::int64_t slot = 0; slot < layout.slots; ++slot) {
    for (std::int64_t head = 0; head < layout.heads; ++head) {
      const Row row = row_at(pool, layout, slot, head);
      if (const auto at = contents.find(slot); at != contents.end()) {
        EXPECT_EQ(row.bits, expected_row(source, half, at->second, head).bits);
      } else if (used[static_cast<std::size_t>(slot / p.pool.page_size)]) {
        EXPECT_TRUE(row.all(poison_bits(dtype, in_tail, Region::past_kv_len))) << slot;
      } else {
        EXPECT_TRUE(row.all(poison_bits(dtype, poison, Region::unreferenced))) << slot;
      }
    }
  }
  EXPECT_EQ(pool.damage({}), std::nullopt);
}

TEST(KvPool, HoldsContentsAndPoisonInEveryDtype) {
  for (const Dtype dtype : floating) {
    Problem p = verify_problem({40, 23}, 3);
    p.model.kv_dtype = dtype;
    for (const PoisonPlan plan : {PoisonPlan{}, {Poison::loud, false}, {Poison::nan, true}}) {
      const TensorSource source(p, Recipe::recall, 1, plan);
      expect_whole_pool(source, PoolHalf::k, view_of(p, 64));
      expect_whole_pool(source, PoolHalf::v, view_of(p, 64));
    }
  }
}

TEST(KvPool, HoldsOddPagesAndDims) {
  for (const std::int64_t page_size : {1, 7, 16, 48}) {
    Problem p = verify_problem({40, 23}, 3);
    p.pool.page_size = page_size;
    p.pool.num_pages = 80;
    p.model.head_dim = 33;
    p.model.v_head_dim = 20;
    const TensorSource source(p, Recipe::normal, 1);
    expect_whole_pool(source, PoolHalf::k, view_of(p, 33));
    expect_whole_pool(source, PoolHalf::v, view_of(p, 20));
  }
}

TEST(KvPool, HonoursStrides) {
  const Problem p = verify_problem({40, 23}, 3);
  const TensorSource source(p, Recipe::normal, 1);
  TensorMeta spaced = view_of(p, 64);
  spaced.strides = {16 * 200 + 50, 200, 70, 1};
  expect_whole_pool(source, PoolHalf::k, spaced);
  TensorMeta head_major = view_of(p, 64);
  head_major.strides = {16 * 128, 64, 16 * 64, 1};
  expect_whole_pool(source, PoolHalf::k, head_major);
  TensorMeta slots = contiguous(Dtype::bf16, {p.pool.num_pages * 16, 2, 64});
  expect_whole_pool(source, PoolHalf::v, slots);
  slots.strides = {999, 64, 1};
  expect_whole_pool(source, PoolHalf::v, slots);
}

TEST(KvPool, FillsTheBytesBetweenRowsWithPoison) {
  const Problem p = verify_problem({40}, 3);
  const TensorSource source(p, Recipe::normal, 1);
  TensorMeta meta = view_of(p, 64);
  meta.strides = {16 * 200, 200, 70, 1};
  const KvPool pool(source, PoolHalf::k, meta, Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 5);
  std::uint16_t between = 0;
  std::memcpy(&between, pool.base() + (slot * 200 + 64) * 2, 2);
  EXPECT_EQ(between, 0x7fc2);
}

TEST(KvPool, AliasesExpandedHeads) {
  Problem p = verify_problem({40}, 3);
  p.model.num_kv_heads = 1;
  const TensorSource source(p, Recipe::normal, 1);
  TensorMeta meta = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 8, 64});
  meta.strides = {16 * 64, 64, 0, 1};
  expect_whole_pool(source, PoolHalf::k, meta);
  // Copies instead of an expansion: every shown head holds the model's one.
  const TensorMeta copies = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 8, 64});
  const KvPool pool(source, PoolHalf::k, copies, Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 7);
  const Row wanted = expected_row(source, PoolHalf::k, {1, 7}, 0);
  for (std::int64_t head = 0; head < 8; ++head) {
    EXPECT_EQ(row_at(pool, pool_layout(copies, 16, ""), slot, head).bits, wanted.bits);
  }
}

TEST(KvPool, ShowsEveryHeadOfARepeatedView) {
  const Problem p = verify_problem({40}, 3);  // two kv heads, shown four times each
  const TensorSource source(p, Recipe::normal, 1);
  const TensorMeta meta = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 8, 64});
  const KvPool pool(source, PoolHalf::v, meta, Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 7);
  for (std::int64_t head = 0; head < 8; ++head) {
    EXPECT_EQ(row_at(pool, pool_layout(meta, 16, ""), slot, head).bits,
              expected_row(source, PoolHalf::v, {1, 7}, head / 4).bits);
  }
}

TEST(KvPool, GivesASlotTwoRequestsClaimToTheFirst) {
  Problem p = verify_problem({6, 6}, 2);
  p.pool.slots = {{{16, 8}}, {{20, 8}}};
  ASSERT_EQ(problem_error(p), std::nullopt);
  expect_whole_pool(TensorSource(p, Recipe::normal, 1), PoolHalf::k, view_of(p, 64));
}

TEST(KvPool, LeavesTheNewTokensToTheKernel) {
  const Problem p = verify_problem({40}, 3);
  const TensorSource source(p, Recipe::normal, 1);
  const PoolLayout layout = pool_layout(view_of(p, 64), 16, "pool");
  const KvPool k(source, PoolHalf::k, view_of(p, 64), Stored::committed);
  const KvPool v(source, PoolHalf::v, view_of(p, 64), Stored::committed);
  for (std::int64_t t = 40; t < 43; ++t) {
    const std::int64_t slot = source.slots().slot(0, t);
    EXPECT_TRUE(row_at(k, layout, slot, 1).all(0x7fc4));
    EXPECT_TRUE(
        row_at(v, layout, slot, 1).all(poison_bits(Dtype::bf16, Poison::loud, Region::not_stored)));
  }
  const std::int64_t last = source.slots().slot(0, 39);
  EXPECT_EQ(row_at(k, layout, last, 1).bits, expected_row(source, PoolHalf::k, {1, 39}, 1).bits);
}

TEST(KvPool, KeepsTheVHalfOfMlaTailsFinite) {
  Problem p = verify_problem({40}, 3);
  p.model = {.num_q_heads = 16, .num_kv_heads = 1, .head_dim = 576, .v_head_dim = 512};
  p.model.mla = true;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p, 576), Stored::committed_and_new);
  const std::int64_t slot = source.slots().slot(0, 42) + 1;  // 43 of 48
  const Row row = row_at(pool, pool_layout(view_of(p, 576), 16, ""), slot, 0);
  for (std::size_t d = 0; d < 576; ++d) {
    const float value = decode(Dtype::bf16, row.bits[d]);
    EXPECT_EQ(std::isfinite(value), d < 512) << d;
    EXPECT_EQ(poisoned_region(Dtype::bf16, row.bits[d]), Region::past_kv_len);
  }
}

TEST(KvPool, SharesThePagesOfASharedPrefix) {
  Problem p = verify_problem({40, 40}, 2);
  for (Request& r : p.requests) {
    r.shared_prefix = 36;
    r.shared_sequence = 9;
  }
  expect_whole_pool(TensorSource(p, Recipe::normal, 1), PoolHalf::k, view_of(p, 64));
}

TEST(KvPool, HoldsListedSlotsThatBreakPages) {
  Problem p = verify_problem({6}, 2);
  p.pool.num_pages = 5;
  p.pool.slots = {{{3, 2}, {30, 1}, {-1, 1}, {60, 4}}};
  p.model.window = 4;
  ASSERT_EQ(problem_error(p), std::nullopt);
  const TensorSource source(p, Recipe::normal, 1);
  EXPECT_EQ(source.slots().page_size, 1);
  expect_whole_pool(source, PoolHalf::k, view_of(p, 64));
}

TEST(KvPool, HoldsEncoderTokens) {
  Problem p = verify_problem({20}, 2);
  p.model.cross_attention = true;
  p.requests[0].encoder_tokens = 37;
  p.pool.num_pages += 4;
  expect_whole_pool(TensorSource(p, Recipe::recall, 1), PoolHalf::v, view_of(p, 64));
}

TEST(KvPool, GivesPaddedRowsFiniteContent) {
  Problem p = verify_problem({20, 0}, 1);
  p.requests[1].live = false;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::v, view_of(p, 64), Stored::committed);
  const Row row = row_at(pool, pool_layout(view_of(p, 64), 16, ""), source.slots().slot(1, 0), 0);
  for (const std::uint32_t bits : row.bits) {
    EXPECT_LT(std::fabs(decode(Dtype::bf16, bits)), 4);
  }
}

TEST(KvPool, LeavesOutSlotsOutsideTheView) {
  const Problem p = verify_problem({40, 23}, 3);
  const TensorSource source(p, Recipe::normal, 1);
  const TensorMeta smaller = contiguous(Dtype::bf16, {2, 16, 2, 64});
  EXPECT_EQ(KvPool(source, PoolHalf::k, smaller, Stored::committed_and_new).damage({}),
            std::nullopt);
  const TensorMeta empty = contiguous(Dtype::bf16, {0, 16, 2, 64});
  EXPECT_EQ(KvPool(source, PoolHalf::k, empty, Stored::committed_and_new).span_bytes(), 0);
}

TEST(KvPool, ShowsPoisonInFrontAndBehind) {
  for (const Dtype dtype : floating) {
    Problem p = verify_problem({40}, 3);
    p.model.kv_dtype = dtype;
    const TensorSource source(p, Recipe::normal, 1);
    const KvPool pool(source, PoolHalf::k, view_of(p, 64), Stored::committed_and_new);
    EXPECT_FALSE(pool.sparse());
    // Page id -1 and the page past the end.
    const auto page = static_cast<std::int64_t>(16 * 2 * 64 * size_bytes(dtype));
    EXPECT_GE(pool.before_bytes(), page);
    std::vector<std::byte> wanted(static_cast<std::size_t>(page));
    fill_poison(wanted, dtype, Poison::nan, Region::before_base);
    EXPECT_EQ(std::memcmp(pool.base() - page, wanted.data(), wanted.size()), 0);
    fill_poison(wanted, dtype, Poison::nan, Region::past_end);
    EXPECT_EQ(std::memcmp(pool.base() + pool.span_bytes(), wanted.data(), wanted.size()), 0);
  }
}

TEST(KvPool, RefusesViewsOfAnotherModel) {
  const Problem p = verify_problem({10}, 2);
  const TensorSource source(p, Recipe::normal, 1);
  EXPECT_THROW(KvPool(source, PoolHalf::k, view_of(p, 32), Stored::committed),
               std::invalid_argument);
}

}  // namespace
}  // namespace attest
