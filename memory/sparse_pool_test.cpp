#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

#include "memory/kv_pool.hpp"
#include "memory/pool_memory.hpp"
#include "memory/test_support.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr std::int64_t gib = std::int64_t{1} << 30;
constexpr std::array floating = {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn,
                                 Dtype::fp8_e4m3fnuz};

Problem large_problem(std::int64_t pool_bytes, Dtype dtype = Dtype::bf16) {
  Problem p = verify_problem({300, 90}, 4);
  p.model.kv_dtype = dtype;
  const auto page_bytes = static_cast<std::int64_t>(16 * 2 * 64 * size_bytes(dtype));
  p.pool.num_pages = pool_bytes / page_bytes;
  return p;
}

TensorMeta view_of(const Problem& p) {
  return contiguous(p.model.kv_dtype,
                    {p.pool.num_pages, p.pool.page_size, p.model.num_kv_heads, p.model.head_dim});
}

std::uint32_t element(const KvPool& pool, Dtype dtype, std::int64_t byte) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, pool.base() + byte, size_bytes(dtype));
  return bits;
}

TEST(SparsePool, HoldsContentsUnderReferencedPages) {
  for (const Placement placement : {Placement::permuted, Placement::high}) {
    Problem p = large_problem(5 * gib);
    p.pool.placement = placement;
    const TensorSource source(p, Recipe::recall, 3);
    const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
    ASSERT_TRUE(pool.sparse());
    EXPECT_EQ(pool.span_bytes(), p.pool.num_pages * 16 * 2 * 64 * 2);
    std::vector<std::byte> row(128);
    for (const auto& [slot, key] : contents_by_slot(p, source.slots())) {
      for (std::int64_t head = 0; head < 2; ++head) {
        source.k_row(key, head, row);
        EXPECT_EQ(std::memcmp(pool.base() + (slot * 2 + head) * 128, row.data(), 128), 0);
      }
    }
    const std::int64_t tail = source.slots().slot(1, 93) + 1;
    EXPECT_EQ(element(pool, Dtype::bf16, tail * 256), 0x7fc3U);
    EXPECT_EQ(pool.damage({}), std::nullopt);
  }
}

TEST(SparsePool, ReadsPoisonInFrontOfTheBaseInEveryDtype) {
  for (const Dtype dtype : floating) {
    for (const Poison poison : {Poison::nan, Poison::loud}) {
      const Problem p = large_problem(gib, dtype);
      const TensorSource source(p, Recipe::normal, 1, {poison, false});
      const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
      const std::int64_t reach = pool.before_bytes();
      // A 32-bit element offset that wraps lands up to 2^31 elements in front.
      EXPECT_GE(reach, static_cast<std::int64_t>(size_bytes(dtype)) << 31);
      const std::uint32_t wanted = poison_bits(dtype, poison, Region::before_base);
      for (const std::int64_t at : {std::int64_t{4}, std::int64_t{4096}, gib, reach}) {
        EXPECT_EQ(element(pool, dtype, -at), wanted) << name(dtype) << ' ' << at;
      }
    }
  }
}

TEST(SparsePool, ReadsPoisonWhereNobodyIs) {
  const Problem p = large_problem(3 * gib);
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::v, view_of(p), Stored::committed_and_new);
  const auto contents = contents_by_slot(p, source.slots());
  for (std::int64_t page = 0; page < p.pool.num_pages; page += 1009) {
    const bool used = std::any_of(contents.begin(), contents.end(),
                                  [&](const auto& entry) { return entry.first / 16 == page; });
    if (used) continue;
    EXPECT_EQ(element(pool, Dtype::bf16, page * 4096 + 128), 0x7fc2U) << page;
  }
  EXPECT_EQ(element(pool, Dtype::bf16, pool.span_bytes() - 2), 0x7fc2U);
}

TEST(SparsePool, FillsTheRestOfSharedMemoryPages) {
  // 1 KiB pages: four of them share a page of the operating system.
  Problem p = large_problem(gib);
  p.pool.page_size = 4;
  p.pool.num_pages *= 4;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
  const auto contents = contents_by_slot(p, source.slots());
  int neighbours = 0;
  for (const auto& [slot, key] : contents) {
    const std::int64_t page = slot / 4;
    const std::int64_t neighbour = page ^ 1;
    const bool used = std::any_of(contents.begin(), contents.end(),
                                  [&](const auto& entry) { return entry.first / 4 == neighbour; });
    if (used) continue;
    ++neighbours;
    EXPECT_EQ(element(pool, Dtype::bf16, neighbour * 1024), 0x7fc2U);
  }
  EXPECT_GT(neighbours, 50);
}

TEST(SparsePool, NoticesChangedBytes) {
  const Problem p = large_problem(3 * gib);
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed);
  const std::int64_t slot = source.slots().slot(1, 50);
  pool.base()[slot * 256 + 130] ^= std::byte{8};
  EXPECT_THAT(pool.damage({}).value(),
              HasSubstr("(slot " + std::to_string(slot) + " head 1 element 1)"));
  const std::vector<std::int64_t> written = {slot};
  EXPECT_EQ(pool.damage(written), std::nullopt);
}

TEST(SparsePool, NoticesChangedBytesBesideAPageInTheSameMemoryPage) {
  Problem p = large_problem(gib);
  p.pool.page_size = 4;
  p.pool.num_pages *= 4;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed);
  const std::int64_t neighbour = source.slots().pages[0][0] ^ 1;
  pool.base()[neighbour * 1024] ^= std::byte{8};
  EXPECT_THAT(pool.damage({}).value(), HasSubstr("slot " + std::to_string(neighbour * 4)));
}

using SparsePoolDeathTest = testing::Test;

TEST(SparsePoolDeathTest, FaultsOnAStrayWrite) {
  Problem p = large_problem(3 * gib);
  p.pool.placement = Placement::high;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
  const auto write = [&](std::int64_t at) {
    *static_cast<volatile std::byte*>(pool.base() + at) = std::byte{1};
  };
  EXPECT_DEATH(write(0), "");
  EXPECT_DEATH(write(-1), "");
  EXPECT_DEATH(write(gib), "");
  EXPECT_DEATH(write(pool.span_bytes()), "");
}

TEST(SparsePool, SaysWhereAStoreMayGo) {
  const Problem p = large_problem(5 * gib);
  const TensorSource source(p, Recipe::normal, 3);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed);
  const std::int64_t new_token = source.slots().slot(0, 300) * 256;
  EXPECT_TRUE(pool.writable(new_token, 256));
  EXPECT_FALSE(pool.writable(-256, 256));
  EXPECT_FALSE(pool.writable(pool.span_bytes(), 1));
  EXPECT_FALSE(pool.writable(-1, pool.span_bytes()));
}

TEST(SparsePool, StaysWithinTheMappingLimit) {
  // 20,000 scattered pages would need 40,000 mappings of their own.
  PoolRequest request;
  request.span_bytes = 4 * gib;
  for (std::int64_t i = 0; i < 20000; ++i) {
    const std::int64_t at = (i * 50 + i % 7) * 4096;
    request.in_use.push_back({at, at + 4096});
  }
  const auto memory = make_sparse_memory(request);
  EXPECT_LE(memory->writable().size(), 4096U);
  std::size_t next = 0;
  for (const ByteRange& use : request.in_use) {
    while (memory->writable()[next].end <= use.begin) ++next;
    EXPECT_LE(memory->writable()[next].begin, use.begin);
    EXPECT_GE(memory->writable()[next].end, use.end);
    memory->base()[use.begin] = std::byte{1};
  }
  std::uint16_t between = 0;
  std::memcpy(&between, memory->base() + 4096, 2);
  EXPECT_EQ(between, 0x7fc2);
}

TEST(SparsePool, KeepsTheGapsOfMergedRangesUnderWatch) {
  Problem p = large_problem(2 * gib);
  p.requests[0].committed = 90000;  // 5,600 scattered pages: more than there are ranges
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
  EXPECT_EQ(pool.damage({}), std::nullopt);
  std::vector<std::int64_t> pages = source.slots().pages[0];
  std::sort(pages.begin(), pages.end());
  const auto gap = std::adjacent_find(pages.begin(), pages.end(), [](auto a, auto b) {
    return b - a == 2;  // the smallest gaps are the merged ones
  });
  ASSERT_NE(gap, pages.end());
  pool.base()[(*gap + 1) * 4096 + 77] ^= std::byte{1};
  EXPECT_NE(pool.damage({}), std::nullopt);
}

TEST(SparsePool, SaysWhatItCouldNotReserve) {
  PoolRequest request;
  request.span_bytes = std::int64_t{1} << 48;  // more than a process has
  try {
    make_sparse_memory(request);
    FAIL() << "reserved 2^48 bytes";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sparse KV pool: reserving 28148"));
    EXPECT_THAT(error.what(), HasSubstr("bytes of address space: ENOMEM"));
    EXPECT_EQ(error.code().value(), ENOMEM);
  }
}

TEST(SparsePool, StartsWhereDensePoolsEnd) {
  const Problem p = large_problem(largest_dense_pool);
  const TensorSource source(p, Recipe::normal, 1);
  EXPECT_FALSE(KvPool(source, PoolHalf::k, view_of(p), Stored::committed).sparse());
  Problem larger = p;
  larger.pool.num_pages += 1;
  const TensorSource other(larger, Recipe::normal, 1);
  EXPECT_TRUE(KvPool(other, PoolHalf::k, view_of(larger), Stored::committed).sparse());
}

TEST(SparsePool, MovesAsAWhole) {
  const Problem p = large_problem(gib);
  const TensorSource source(p, Recipe::normal, 1);
  KvPool first(source, PoolHalf::k, view_of(p), Stored::committed_and_new);
  std::byte* const base = first.base();
  const KvPool second(std::move(first));
  EXPECT_EQ(second.base(), base);
  EXPECT_EQ(second.damage({}), std::nullopt);
}

}  // namespace
}  // namespace attest
