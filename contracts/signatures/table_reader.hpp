#pragma once

#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/signatures/slot_contents.hpp"

namespace attest {

/// Walks rows of a token table as the CPU kernels do: row-major from the first element, whatever
/// the strides say, past the end of a row into the next one.
class TableReader {
 public:
  explicit TableReader(const IntArray& table) : table_(table) {}

  /// Slot in cell `column` of row `row`, or outside_slot where there is no such cell.
  std::int64_t slot(std::int64_t row, std::int64_t column) const;
  /// How many of `count` cells from `column` on can be looked at: at most as many as the table has,
  /// none where the walk would leave int64.
  std::int64_t walkable(std::int64_t column, std::int64_t count) const;
  /// Appends the contents of `count` cells of row `row` from `column` on. Cells outside the table
  /// are read as outside; a hostile count costs no more than the table is large.
  void read(RowKeys& keys, std::int64_t row, std::int64_t column, std::int64_t count) const;

 private:
  const IntArray& table_;
};

}  // namespace attest
