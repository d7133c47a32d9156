#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/wrap_model.hpp"
#include "contracts/call.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/kv_pool.hpp"

namespace attest {

/// Rows of a K or V tensor as the kernel addresses them, with the one check a device does not make:
/// an address outside the readable range gives nullptr instead of whatever lies there.
class KvView {
 public:
  KvView() = default;
  /// A pool (num_pages, page_size, heads, dim) or (num_slots, heads, dim). `meta` may be a view of
  /// the pool's memory other than the one it was built for (MLA: V inside K's rows).
  KvView(const KvPool& pool, const TensorMeta& meta);
  /// K or V of the new tokens (rows, heads, dim).
  KvView(const GuardedBuffer& buffer, const TensorMeta& meta);

  /// Head 0's elements of the token at `in_page` of `page`; nullptr when any head's lie outside, or
  /// where `wrap` reads zero (reads_zero tells them apart).
  const std::byte* row(std::int64_t page, std::int64_t in_page, const WrapModel& wrap = {}) const;
  /// Whether a kernel with this mistake finds zeros there.
  bool reads_zero(std::int64_t page, std::int64_t in_page, const WrapModel& wrap) const;

  Dtype dtype() const { return dtype_; }
  /// Byte offset of the same element, not wrapped and not checked.
  std::int64_t offset(std::int64_t page, std::int64_t in_page) const;

  /// Bytes readable from the base, their number of elements cut to 32 bits.
  std::int64_t span_of_32_bits() const;

  std::int64_t heads() const { return heads_; }
  std::int64_t dim() const { return dim_; }
  /// Distance between heads; 0 for expanded heads.
  std::int64_t head_stride_bytes() const { return head_stride_ * element_bytes_; }
  std::int64_t row_bytes() const { return dim_ * element_bytes_; }

 private:
  std::int64_t wrapped(std::int64_t page, std::int64_t in_page, const WrapModel& wrap) const;
  KvView(const std::byte* base, std::int64_t before, std::int64_t span, const TensorMeta& meta);

  const std::byte* base_ = nullptr;
  Dtype dtype_ = Dtype::bf16;
  std::int64_t before_ = 0;  ///< readable bytes in front of base_
  std::int64_t span_ = 0;    ///< readable bytes from base_
  std::int64_t page_stride_ = 0, slot_stride_ = 0, head_stride_ = 0;  ///< elements
  std::int64_t heads_ = 0, dim_ = 0, element_bytes_ = 0;
};

}  // namespace attest
