#pragma once

#include <cstddef>
#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// A (rows, heads, dim) tensor in memory; strides in elements. Elements of a row are adjacent.
struct RowLayout {
  Dtype dtype = Dtype::bf16;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;

  std::int64_t offset(std::int64_t row, std::int64_t head) const {
    return row * row_stride + head * head_stride;
  }
  /// Bytes from element 0 to behind the last element.
  std::size_t span_bytes() const;
};

/// \throws std::invalid_argument naming `what` and the field: another rank, a negative size or
/// stride, a last dimension that is not dense, a dtype that is not floating.
RowLayout row_layout(const TensorMeta& meta, const char* what);

/// One K or V pool in memory: slots, grouped into units that the scheduler hands out whole. Strides
/// in elements.
struct PoolLayout {
  Dtype dtype = Dtype::bf16;
  std::int64_t slots = 0;
  std::int64_t heads = 0;  ///< distinct ones: 1 for a stride-0 head dimension
  std::int64_t dim = 0;
  std::int64_t page_slots = 1;  ///< slots per first-dimension step of the view; 1 for slot views
  std::int64_t page_stride = 0;
  std::int64_t slot_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t unit_slots = 1;  ///< slots per unit

  std::int64_t offset(std::int64_t slot) const {
    return slot / page_slots * page_stride + slot % page_slots * slot_stride;
  }
  std::int64_t units() const { return (slots + unit_slots - 1) / unit_slots; }
  std::int64_t unit_end_slot(std::int64_t unit) const;
  /// Byte range of one unit, gaps between its rows included.
  std::int64_t unit_begin(std::int64_t unit) const;
  std::int64_t unit_end(std::int64_t unit) const;
  std::int64_t span_bytes() const { return slots == 0 ? 0 : unit_end(units() - 1); }
  std::int64_t row_bytes() const;
};

/// Layout of a pool view (num_pages, page_size, heads, dim) or (num_slots, heads, dim) whose
/// scheduler allocates `page_size` slots at a time.
/// \throws std::invalid_argument as row_layout, and for views whose pages interleave in memory.
PoolLayout pool_layout(const TensorMeta& meta, std::int64_t page_size, const char* what);

}  // namespace attest
