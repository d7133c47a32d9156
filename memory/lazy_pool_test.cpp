#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "memory/kv_pool.hpp"
#include "memory/pool_memory.hpp"
#include "memory/sanitizers.hpp"
#include "memory/test_support.hpp"

namespace attest {
namespace {

using testing::HasSubstr;

constexpr std::int64_t gib = std::int64_t{1} << 30;
constexpr std::int64_t kib = 1024;

PoolRequest request_of(std::int64_t span) {
  PoolRequest request;
  request.span_bytes = span;
  request.in_use = {{2 * gib, 2 * gib + 12 * kib}, {2 * gib + 64 * kib, 2 * gib + 72 * kib}};
  return request;
}

std::uint16_t word_at(const KvMemory& memory, std::int64_t at) {
  std::uint16_t word = 0;
  std::memcpy(&word, memory.base() + at, sizeof word);
  return word;
}

/// Whether lazy memory is what a pool gets here: not under ThreadSanitizer.
bool lazy_here() { return large_pool_wanted() == LargePool::lazy; }

TEST(LazyPool, ShowsThePoisonOfTheRegionAndLogsTheFirstReadOfAStretch) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  const auto memory = make_sparse_memory(request_of(5 * gib), LargePool::lazy);
  EXPECT_TRUE(memory->stray_reads().empty());
  EXPECT_EQ(word_at(*memory, -2 * gib), 0x7fc1);
  EXPECT_EQ(word_at(*memory, 5 * gib - 2), 0x7fc2);
  EXPECT_EQ(word_at(*memory, 3 * gib + 100), 0x7fc2);
  EXPECT_EQ(word_at(*memory, 3 * gib + 200), 0x7fc2) << "the same stretch, not logged again";
  const std::vector<StrayRead> reads = memory->stray_reads();
  ASSERT_EQ(reads.size(), 3U);
  EXPECT_EQ(reads[0].offset, -2 * gib);
  EXPECT_EQ(reads[0].region, Region::before_base);
  EXPECT_NE(reads[0].instruction, 0U);
  EXPECT_EQ(reads[1].offset, 5 * gib - 2);
  EXPECT_EQ(reads[2].offset, 3 * gib + 100);
  EXPECT_EQ(reads[2].region, Region::unreferenced);
}

TEST(LazyPool, NeverCoversPagesInUse) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  const auto memory = make_sparse_memory(request_of(5 * gib), LargePool::lazy);
  for (const ByteRange& range : memory->writable()) {
    for (std::int64_t at = range.begin; at < range.end; at += 4 * kib) {
      memory->base()[at] = std::byte{0x17};
    }
  }
  EXPECT_TRUE(memory->stray_reads().empty());
  for (std::int64_t at = 2 * gib - 64 * kib; at < 2 * gib + 256 * kib; at += 4 * kib) {
    const bool used =
        std::any_of(memory->writable().begin(), memory->writable().end(),
                    [at](const ByteRange& range) { return at >= range.begin && at < range.end; });
    EXPECT_EQ(word_at(*memory, at), used ? 0x7f17 : 0x7fc2) << at;
  }
}

TEST(LazyPool, IsTheSameMemoryAsAnEagerOne) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::f32}) {
    PoolRequest request = request_of(5 * gib);
    request.dtype = dtype;
    request.poison = Poison::loud;
    const auto lazy = make_sparse_memory(request, LargePool::lazy);
    const auto eager = make_sparse_memory(request, LargePool::eager);
    EXPECT_EQ(lazy->before_bytes(), eager->before_bytes());
    for (std::int64_t at = -4 * gib; at < 5 * gib; at += gib / 4 + 4 * kib) {
      EXPECT_EQ(word_at(*lazy, at), word_at(*eager, at)) << at;
    }
    EXPECT_TRUE(eager->stray_reads().empty());
  }
}

TEST(LazyPool, ServesSeveralThreadsAtOnce) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  const auto memory = make_sparse_memory(request_of(5 * gib), LargePool::lazy);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::int64_t at = gib; at < gib + 100 * 64 * kib; at += 64 * kib) {
        if (word_at(*memory, at) != 0x7fc2) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LazyPoolDeathTest, NamesTheOffsetOfAStrayStoreBeforeTheProcessEnds) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  const auto memory = make_sparse_memory(request_of(5 * gib), LargePool::lazy);
  const auto store = [&](std::int64_t at) {
    *static_cast<volatile std::byte*>(memory->base() + at) = std::byte{1};
  };
  EXPECT_DEATH(store(-4096), "store at -4096 bytes from a KV pool's base .before base.");
  EXPECT_DEATH(store(gib), "store at 1073741824 bytes from a KV pool's base .not a page in use.");
  [[maybe_unused]] const std::uint16_t seen = word_at(*memory, gib);
  EXPECT_DEATH(store(gib), "store at 1073741824 bytes") << "poison that was read is read-only";
}

TEST(SparsePool, PutsTheBaseWhereTheLow32BitsCarry) {
  for (const LargePool kind : {LargePool::lazy, LargePool::eager}) {
    if (kind == LargePool::lazy && !lazy_here()) continue;
    const auto memory = make_sparse_memory(request_of(3 * gib), kind);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->base()) & 0xffffffffU, 0xfffff000U);
  }
}

std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8));
  }
  return 0;
}

TEST(SparsePool, OfTwentyGibibytesTakesAFewMappingsAndNoMemory) {
  if (!lazy_here()) GTEST_SKIP() << "signals are delayed here";
  Problem p = verify_problem({300, 90}, 4);
  p.pool.num_pages = 20 * gib / (16 * 2 * 64 * 2);
  const TensorMeta view = contiguous(Dtype::bf16, {p.pool.num_pages, 16, 2, 64});
  const TensorSource source(p, Recipe::normal, 1);
  const std::int64_t mappings = memory_limits().mappings;
  const std::int64_t resident = resident_kib();
  const KvPool k(source, PoolHalf::k, view, Stored::committed_and_new);
  const KvPool v(source, PoolHalf::v, view, Stored::committed_and_new);
  EXPECT_LT(memory_limits().mappings - mappings, 300);
  EXPECT_LT(resident_kib() - resident, 16 * 1024);
  EXPECT_EQ(k.note(), "");
  EXPECT_EQ(*reinterpret_cast<const std::uint16_t*>(v.base() - 2), 0x7fc1);
  std::vector<StrayRead> reads;
  k.add_stray_reads(reads);
  v.add_stray_reads(reads);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].half, PoolHalf::v);
  EXPECT_EQ(reads[0].offset, -2);
}

/// Runs `check` in a process that may have `bytes` more address space than now.
template <class Check>
void with_little_address_space(std::int64_t bytes, Check&& check) {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0;
  statm >> pages;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = static_cast<rlim_t>(pages * 4 * kib + bytes);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  check();
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(LargeMemoryDeathTest, FallsBackToDenseMemoryAndSaysWhy) {
  if (needs_all_addresses) GTEST_SKIP() << "no limit on addresses under a sanitizer";
  const auto check = [] {
    const auto memory = make_large_memory(request_of(100 << 20), LargePool::lazy);
    EXPECT_FALSE(memory->sparse());
    EXPECT_THAT(std::string(memory->note()), HasSubstr("dense KV memory instead of lazy: lazy: "
                                                       "sparse KV pool: reserving "));
    EXPECT_THAT(std::string(memory->note()), HasSubstr("ENOMEM (the address space is limited to "));
    EXPECT_EQ(word_at(*memory, 0), 0x7fc2);
  };
  EXPECT_EXIT(with_little_address_space(gib, check), testing::ExitedWithCode(0), "");
}

TEST(LargeMemoryDeathTest, SaysWhatItTriedWhereNothingFits) {
  if (needs_all_addresses) GTEST_SKIP() << "no limit on addresses under a sanitizer";
  const auto check = [] {
    try {
      make_large_memory(request_of(5 * gib), LargePool::lazy);
      ADD_FAILURE() << "there is no room for it";
    } catch (const PoolUnavailable& error) {
      for (const char* const form : {"lazy: sparse", "eager: sparse", "dense: dense KV pool of"}) {
        EXPECT_THAT(error.what(), HasSubstr(form));
      }
    }
  };
  EXPECT_EXIT(with_little_address_space(gib, check), testing::ExitedWithCode(0), "");
}

TEST(LargeMemory, IsTheKindThatTheEnvironmentNames) {
  setenv("ATTEST_KV_MEMORY", "eager", 1);
  EXPECT_EQ(large_pool_wanted(), LargePool::eager);
  setenv("ATTEST_KV_MEMORY", "dense", 1);
  EXPECT_EQ(large_pool_wanted(), LargePool::dense);
  Problem p = verify_problem({30}, 4);
  p.pool.num_pages = (100 << 20) / 4096;
  const TensorSource source(p, Recipe::normal, 1);
  const KvPool pool(source, PoolHalf::k, contiguous(Dtype::bf16, {p.pool.num_pages, 16, 2, 64}),
                    Stored::committed_and_new);
  EXPECT_FALSE(pool.sparse());
  EXPECT_EQ(pool.damage({}), std::nullopt);
  setenv("ATTEST_KV_MEMORY", "tiny", 1);
  EXPECT_THROW(large_pool_wanted(), std::invalid_argument);
  unsetenv("ATTEST_KV_MEMORY");
}

TEST(MemoryLimits, AreBlamedOneAtATime) {
  MemoryLimits limits{.overcommit = 0,
                      .max_map_count = 65530,
                      .mappings = 200,
                      .address_space = -1,
                      .available_bytes = 8 * gib};
  EXPECT_THAT(likely_limit(limits), HasSubstr("8589934592 bytes of memory are available"));
  limits.overcommit = 2;
  EXPECT_THAT(likely_limit(limits), HasSubstr("vm.overcommit_memory = 2"));
  limits.mappings = 65529;
  EXPECT_THAT(likely_limit(limits), HasSubstr("vm.max_map_count = 65530"));
  limits.address_space = gib;
  EXPECT_THAT(likely_limit(limits), HasSubstr("ulimit -v"));
  const MemoryLimits here = memory_limits();
  EXPECT_GT(here.mappings, 10);
  EXPECT_GT(here.max_map_count, 1000);
  EXPECT_GT(here.available_bytes, 1 << 20);
}

}  // namespace
}  // namespace attest
