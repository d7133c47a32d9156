#pragma once

#include "backends/hip/kernels/block_work.hpp"

namespace attest::hip {

inline constexpr int reduce_threads = 128;
inline constexpr int reduce_lanes = 32;
inline constexpr int reduce_columns = 256;  ///< of one block
inline constexpr int largest_split_count = 128;

struct ReduceShared {
  float maxima[largest_split_count];
  float sums[largest_split_count];
  float parts[reduce_threads / reduce_lanes][reduce_columns];
};

/// Whether some request has the row: the others must stay as they are.
__device__ inline bool row_is_covered(const PagedArgs& args, std::int64_t row) {
  return row >= first_row_of(args, 0) && row < first_row_of(args, args.batch);
}

}  // namespace attest::hip
