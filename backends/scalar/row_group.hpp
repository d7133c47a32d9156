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

}  // namespace attest
