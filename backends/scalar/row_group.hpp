#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "backends/scalar/operands.hpp"

namespace attest {

/// One request as the kernel understands it from the call: `rows` queries at the end of `length`
/// keys (bottom-right causal order), or all keys for every row.
struct RequestShape {
  std::int64_t first_row = 0;  ///< of q and out
  std::int64_t rows = 0;
  std::int64_t length = 0;  ///< keys, those of the rows included
  std::int64_t window = 0;  ///< visible keys including the row's own; <= 0 = off
  bool causal = true;
  std::int64_t page_size = 1;
  std::span<const std::int64_t> tree;  ///< (rows, rows), nonzero = visible; empty = a chain
  /// With a tree: row r walks the new keys only to the end of its own block of this many rows.
  std::int64_t tree_block = 0;
  /// Keys [0, visited) are walked at all, whoever sees them.
  std::int64_t visited = std::numeric_limits<std::int64_t>::max();
  /// Rows that the launch computes at all; the rest stay as they were.
  std::int64_t computed_rows = std::numeric_limits<std::int64_t>::max();
  // What some faults alone read.
  std::int64_t q_heads_per_kv = 1;  ///< rows that a block packs for one token
  std::int64_t longest_rows = 0;    ///< new tokens of the batch's longest request
  std::int64_t v_tile = 64;         ///< keys from one tile of V to the next
};

/// Keys [begin, end) that row r sees: what the causal order and the window leave.
struct Seen {
  std::int64_t begin = 0, end = 0;
};
Seen seen_by(const RequestShape& shape, std::int64_t r, Fault fault);

/// The rows of a request with the keys that any of them sees, each looked up once by its token
/// number. Rows outside [0, row_limit) are left out: `lookup` and the output never see them.
/// \throws whatever `lookup` throws.
RowGroup make_group(RequestShape shape, std::int64_t row_limit, Fault fault,
                    const std::function<KeyRow(std::int64_t token)>& lookup);

/// Modelled: the first of several rows is taken for one of the request before. Takes it out of
/// `shape`; \returns it as a row behind that request's keys, or no row at all.
RequestShape first_row_taken_out(RequestShape& shape, const RequestShape& before);

}  // namespace attest
