#pragma once

#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// Elements from a tensor's first to one past its last, gaps included and storage_offset not; 0 for
/// an empty one. Saturates far above any storage.
std::int64_t spanned_elements(const TensorMeta& tensor);

/// Whether two index tuples of the tensor name the same byte: expanded or overlapping rows. Exact,
/// but for layouts that would take thousands of steps to tell, which count as apart.
bool overlaps_itself(const TensorMeta& tensor);

/// Whether two tensors whose offsets count from one storage have a byte in common. Interleaved
/// views (K and V of one buffer) have none. Exact as above; labels are not looked at.
bool have_common_bytes(const TensorMeta& a, const TensorMeta& b);

/// The same of tensors that may lie anywhere: only what equal labels say is known to overlap.
bool share_bytes(const TensorMeta& a, const TensorMeta& b);

}  // namespace attest
