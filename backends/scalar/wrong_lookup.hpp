#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/scalar/row_group.hpp"

namespace attest {

/// Where a kernel looks for a token in a table of pages.
struct TablePlace {
  std::int64_t row = 0, column = 0;
  std::int64_t behind = 0;  ///< pages to go on from the one that is named there
};
/// Row `request` and the column of the token, except where a fault has it look elsewhere.
TablePlace table_place(std::int64_t request, std::int64_t token, std::int64_t page_size,
                       Fault fault);

/// The same column in a list of pages.
TablePlace list_place(std::int64_t token, std::int64_t page_size, Fault fault);

/// Keys of a tile of V that takes as many elements as K's of 64 keys.
std::int64_t v_tile_of(const Operands& op);

/// The token's rows; V alone from another one where a fault has it so.
KeyRow with_wrong_v(const RequestShape& shape, std::int64_t token, Fault fault,
                    const std::function<KeyRow(std::int64_t token)>& lookup);

/// The mask of one request, (rows, rows), as a kernel with the fault reads it.
/// \returns nothing where the fault is another one
std::vector<std::int64_t> misread_mask(std::span<const std::int64_t> square, std::int64_t rows,
                                       Fault fault);

}  // namespace attest
