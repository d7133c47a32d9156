#include "memory/tensor_layout.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace attest {
namespace {

[[noreturn]] void refuse(const char* what, const std::string& why) {
  throw std::invalid_argument(std::string(what) + ": " + why);
}

void require_sound(const TensorMeta& meta, const char* what) {
  if (!is_floating(meta.dtype)) {
    refuse(what, "dtype " + std::string(name(meta.dtype)) + " is not a floating type");
  }
  if (meta.strides.size() != meta.shape.size()) {
    refuse(what, std::to_string(meta.shape.size()) + " sizes but " +
                     std::to_string(meta.strides.size()) + " strides");
  }
  for (std::size_t i = 0; i < meta.shape.size(); ++i) {
    const std::string at = "[" + std::to_string(i) + "] = ";
    if (meta.shape[i] < 0) refuse(what, "shape" + at + std::to_string(meta.shape[i]) + " < 0");
    if (meta.strides[i] < 0) refuse(what, "stride" + at + std::to_string(meta.strides[i]) + " < 0");
  }
  if (meta.shape.back() > 1 && meta.strides.back() != 1) {
    refuse(what, "the last stride is " + std::to_string(meta.strides.back()) + ", must be 1");
  }
}

/// The largest offset plus one, from sizes and strides; zero when any size is.
std::int64_t span_elements(const TensorMeta& meta) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < meta.shape.size(); ++i) {
    if (meta.shape[i] == 0) return 0;
    last += (meta.shape[i] - 1) * meta.strides[i];
  }
  return last + 1;
}

}  // namespace

RowLayout row_layout(const TensorMeta& meta, const char* what) {
  if (meta.shape.size() != 3) {
    refuse(what, "has " + std::to_string(meta.shape.size()) + " dimensions, must have 3");
  }
  require_sound(meta, what);
  return {meta.dtype,    meta.shape[0],   meta.shape[1],
          meta.shape[2], meta.strides[0], meta.strides[1]};
}

std::size_t RowLayout::span_bytes() const {
  if (rows == 0 || heads == 0 || dim == 0) return 0;
  return static_cast<std::size_t>(offset(rows - 1, heads - 1) + dim) * size_bytes(dtype);
}

PoolLayout pool_layout(const TensorMeta& meta, std::int64_t page_size, const char* what) {
  const std::size_t rank = meta.shape.size();
  if (rank != 3 && rank != 4) {
    refuse(what, "has " + std::to_string(rank) + " dimensions, must have 3 or 4");
  }
  require_sound(meta, what);
  PoolLayout layout;
  layout.dtype = meta.dtype;
  layout.heads = meta.stride(rank - 2) == 0 ? std::min<std::int64_t>(meta.size(rank - 2), 1)
                                            : meta.size(rank - 2);
  layout.dim = meta.size(rank - 1);
  layout.head_stride = meta.stride(rank - 2);
  layout.page_slots = rank == 4 ? meta.size(1) : 1;
  layout.page_stride = meta.stride(0);
  layout.slot_stride = rank == 4 ? meta.stride(1) : 0;
  layout.slots = span_elements(meta) == 0 ? 0 : meta.size(0) * layout.page_slots;
  // A view with larger pages than the scheduler's (or with none) still shows whole pages.
  layout.unit_slots =
      layout.page_slots % page_size == 0 ? std::max<std::int64_t>(layout.page_slots, 1) : page_size;
  if (layout.units() > 1 && layout.unit_end(0) > layout.unit_begin(1)) {
    refuse(what, "pages interleave in memory: page 0 ends at byte " +
                     std::to_string(layout.unit_end(0)) + ", page 1 starts at byte " +
                     std::to_string(layout.unit_begin(1)));
  }
  return layout;
}

std::int64_t PoolLayout::row_bytes() const {
  return dim * static_cast<std::int64_t>(size_bytes(dtype));
}

std::int64_t PoolLayout::unit_end_slot(std::int64_t unit) const {
  return std::min((unit + 1) * unit_slots, slots);
}

std::int64_t PoolLayout::unit_begin(std::int64_t unit) const {
  return offset(unit * unit_slots) * static_cast<std::int64_t>(size_bytes(dtype));
}

std::int64_t PoolLayout::unit_end(std::int64_t unit) const {
  const std::int64_t last = offset(unit_end_slot(unit) - 1) + (heads - 1) * head_stride;
  return last * static_cast<std::int64_t>(size_bytes(dtype)) + row_bytes();
}

}  // namespace attest
