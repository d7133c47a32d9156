#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/hip/kernels/paged_args.hpp"
#include "backends/hip/kernels/planted_fault.hpp"
#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip {

__device__ inline std::int64_t index_at(const IndexArgs& array, std::int64_t i) {
  return array.wide != 0 ? static_cast<const std::int64_t*>(array.data)[i]
                         : static_cast<const std::int32_t*>(array.data)[i];
}

__device__ inline std::int64_t first_row_of(const PagedArgs& args, std::int32_t request) {
  return args.first_rows != nullptr ? args.first_rows[request]
                                    : std::int64_t{request} * args.rows_each;
}

__device__ inline std::int32_t length_of(const PagedArgs& args, std::int32_t request) {
  if (args.lengths.data != nullptr) {
    return static_cast<std::int32_t>(index_at(args.lengths, request));
  }
  const std::int32_t pages = args.page_starts[request + 1] - args.page_starts[request];
  if (args.page_size == 1 || pages == 0) return pages;
  return (pages - 1) * args.page_size + args.last_page_lens[request];
}

/// First table entry of a request.
template <PlantedFault fault>
__device__ inline std::int64_t table_start_of(const PagedArgs& args, std::int32_t request) {
  if constexpr (fault == PlantedFault::table_rows_packed) {
    const std::int64_t needed = (args.max_seqlen_k + args.page_size - 1) / args.page_size;
    return request * std::min(needed, args.table_stride);
  }
  return args.page_starts != nullptr ? args.page_starts[request]
                                     : std::int64_t{request} * args.table_stride;
}

/// The key whose table entry is read for `key`: one for a whole tile where a fault has it so.
template <PlantedFault fault>
__device__ inline std::int32_t looked_up(std::int32_t key, std::int32_t first_key, int tile) {
  if (fault != PlantedFault::one_table_entry_a_tile) return key;
  return std::max(key / tile * tile, first_key);
}

/// Queries are packed: row m of a request and kv head is token m / group, head m % group of the
/// group. So all heads and tokens that share keys share their loads, whatever the group's size.
struct BlockWork {
  std::int32_t request = -1;                 ///< -1: nothing to do
  std::int32_t tokens = 0;                   ///< new tokens of the request
  std::int32_t length = 0;                   ///< its keys
  std::int32_t first = 0;                    ///< packed row of the block's row 0
  std::int32_t packed = 0;                   ///< packed rows of the request
  std::int64_t first_row = 0;                ///< row of q and out of token 0
  std::int32_t first_key = 0, last_key = 0;  ///< keys [first, last) that some row of the block sees
};

/// Where the blocks of a request begin, if every request before it took as many as it can:
/// floor(a + b) - floor(a) + 1 >= ceil(b), so ranges never overlap and a block finds its request
/// without a prefix sum.
__device__ inline std::int64_t first_block_of(const PagedArgs& args, std::int32_t request,
                                              std::int32_t rows) {
  const std::int64_t group = args.num_q_heads / args.num_kv_heads;
  return first_row_of(args, request) * group / rows + request;
}

/// The last request whose blocks begin at or before `block`.
__device__ inline std::int32_t request_of_block(const PagedArgs& args, std::int64_t block,
                                                std::int32_t rows) {
  std::int32_t low = 0;
  std::int32_t high = args.batch;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    if (first_block_of(args, middle, rows) <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Keys [begin, end) that token `token` of the request sees: bottom-right causal, and at most
/// window_left back. Empty for a token that stands before key 0.
struct KeyRange {
  std::int32_t begin = 0, end = 0;
};

template <PlantedFault fault>
__device__ inline KeyRange keys_of_token(const PagedArgs& args, const BlockWork& work,
                                         std::int32_t token) {
  std::int32_t position = work.length - work.tokens + token;
  std::int32_t left = args.window_left;
  if constexpr (fault == PlantedFault::causal_one_too_short) position -= 1;
  if constexpr (fault == PlantedFault::causal_one_too_long) {
    position = position + 1 < work.length ? position + 1 : position;
  }
  if constexpr (fault == PlantedFault::window_one_too_long) left += left >= 0 ? 1 : 0;
  if constexpr (fault == PlantedFault::window_one_too_short) left -= left > 0 ? 1 : 0;
  if (position < 0) return {};
  KeyRange keys{0, position + 1};
  if (left >= 0 && position > left) keys.begin = position - left;
  if constexpr (fault == PlantedFault::reads_to_the_end_of_the_page) {
    const bool last = token == work.tokens - 1;
    const std::int32_t pages = (work.length + args.page_size - 1) / args.page_size;
    if (last) keys.end = pages * args.page_size;
  }
  if constexpr (fault == PlantedFault::bounded_by_the_maximum) {
    keys.end = static_cast<std::int32_t>(std::min<std::int64_t>(keys.end, args.max_seqlen_k));
  }
  if constexpr (fault == PlantedFault::partitions_of_32_keys) {
    keys.end = keys.end < args.splits * 32 ? keys.end : args.splits * 32;
  }
  return keys;
}

/// The work of block `block` of `rows` packed rows each.
template <PlantedFault fault>
__device__ inline BlockWork work_of_block(const PagedArgs& args, std::int64_t block,
                                          std::int32_t rows) {
  BlockWork work;
  if (args.batch <= 0) return work;
  const std::int32_t request = request_of_block(args, block, rows);
  const std::int32_t group = args.num_q_heads / args.num_kv_heads;
  work.first_row = first_row_of(args, request);
  work.tokens = static_cast<std::int32_t>(first_row_of(args, request + 1) - work.first_row);
  const std::int64_t rows_left = args.total_rows - work.first_row;
  work.packed = static_cast<std::int32_t>(std::min<std::int64_t>(work.tokens, rows_left)) * group;
  const std::int64_t first = (block - first_block_of(args, request, rows)) * rows;
  if (first < 0 || first >= work.packed) return work;
  work.first = static_cast<std::int32_t>(first);
  work.request = request;
  work.length = length_of(args, request);
  const std::int32_t end = work.first + rows < work.packed ? work.first + rows : work.packed;
  work.first_key = keys_of_token<fault>(args, work, work.first / group).begin;
  work.last_key = keys_of_token<fault>(args, work, (end - 1) / group).end;
  return work;
}

}  // namespace attest::hip
