#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/dtype.hpp"
#include "memory/poison.hpp"
#include "memory/stray_read.hpp"

namespace attest {

/// Bytes [begin, end) relative to a pool's base.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// The address space of one pool, poison everywhere: Region::before_base in front of the base,
/// unreferenced inside, past_end behind.
class KvMemory {
 public:
  virtual ~KvMemory() = default;
  virtual std::byte* base() const = 0;
  virtual std::int64_t before_bytes() const = 0;  ///< readable in front of the base
  virtual std::int64_t after_bytes() const = 0;   ///< readable behind the span
  virtual bool sparse() const = 0;
  /// What can be written, ascending and disjoint. Dense: everything, both margins included.
  virtual std::span<const ByteRange> writable() const = 0;
  /// Reads of poison so far, as far as this kind of memory notices them (lazy), in their order; the
  /// half is left at k.
  virtual std::vector<StrayRead> stray_reads() const { return {}; }
  /// Why it is not the memory that was asked for; empty = it is.
  virtual std::string_view note() const { return ""; }
};

/// Memory behind pools past largest_dense_pool.
enum class LargePool {
  lazy,   ///< poison is mapped when it is first read, by a SIGSEGV handler that keeps a log
  eager,  ///< all poison is mapped at once: for places where a handler is unwelcome
  dense,  ///< every byte is real
};
std::string_view name(LargePool kind);
/// What ATTEST_KV_MEMORY says: "lazy" (also when unset), "eager" or "dense". Lazy becomes eager
/// under ThreadSanitizer. \throws std::invalid_argument for another word
LargePool large_pool_wanted();

/// What to lay out.
struct PoolRequest {
  std::int64_t span_bytes = 0;
  Dtype dtype = Dtype::bf16;
  Poison poison = Poison::nan;
  std::int64_t margin_bytes = 0;  ///< dense: wanted before and behind; at least 4 KiB are given
  std::vector<ByteRange> in_use;  ///< sparse: what must be writable, ascending and disjoint
};

/// Plain memory. \throws std::bad_alloc
std::unique_ptr<KvMemory> make_dense_memory(const PoolRequest& request);

/// Address space with poison that nobody can write and private memory under the bytes in use
/// (rounded to 4 KiB). The base lies at the end of a 4 GiB stretch of addresses, so that arithmetic
/// on its low 32 bits alone always carries. \throws std::system_error naming what was asked, the
/// errno and the limit of the machine that is behind it.
std::unique_ptr<KvMemory> make_sparse_memory(const PoolRequest& request,
                                             LargePool kind = LargePool::eager);

/// This machine cannot hold the pool in any form; says which forms were tried and why each failed.
class PoolUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The memory that is wanted, else the next that can be had: lazy, eager, dense where it fits in
/// half of the memory that is free; note() then says why. \throws PoolUnavailable
std::unique_ptr<KvMemory> make_large_memory(const PoolRequest& request, LargePool wanted);

/// Limits that turn a mapping down.
struct MemoryLimits {
  std::int64_t overcommit = 0;       ///< vm.overcommit_memory
  std::int64_t max_map_count = 0;    ///< vm.max_map_count
  std::int64_t mappings = 0;         ///< of this process now
  std::int64_t address_space = -1;   ///< RLIMIT_AS in bytes; -1 = none
  std::int64_t available_bytes = 0;  ///< MemAvailable
};
MemoryLimits memory_limits();
/// Which of them explains a mapping that failed for lack of memory: one clause, for people.
std::string likely_limit(const MemoryLimits& limits);

}  // namespace attest
