#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "contracts/dtype.hpp"
#include "memory/poison.hpp"

namespace attest {

/// Bytes [begin, end) relative to a pool's base.
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// The address space of one pool, poison everywhere: Region::before_base in front of the base,
/// unreferenced inside, past_end behind.
class PoolMemory {
 public:
  virtual ~PoolMemory() = default;
  virtual std::byte* base() const = 0;
  virtual std::int64_t before_bytes() const = 0;  ///< readable in front of the base
  virtual std::int64_t after_bytes() const = 0;   ///< readable behind the span
  virtual bool sparse() const = 0;
  /// What can be written, ascending and disjoint. Dense: everything, both margins included.
  virtual std::span<const ByteRange> writable() const = 0;
};

/// What to lay out.
struct PoolRequest {
  std::int64_t span_bytes = 0;
  Dtype dtype = Dtype::bf16;
  Poison poison = Poison::nan;
  std::int64_t margin_bytes = 0;  ///< dense: wanted before and behind; at least 4 KiB are given
  std::vector<ByteRange> in_use;  ///< sparse: what must be writable, ascending and disjoint
};

/// Plain memory. \throws std::bad_alloc
std::unique_ptr<PoolMemory> make_dense_memory(const PoolRequest& request);

/// Address space with poison mapped read-only and private memory under the bytes in use (rounded to
/// 4 KiB). \throws std::system_error naming what was asked and the errno.
std::unique_ptr<PoolMemory> make_sparse_memory(const PoolRequest& request);

}  // namespace attest
