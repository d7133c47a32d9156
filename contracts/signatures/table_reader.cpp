#include "contracts/signatures/table_reader.hpp"

#include <algorithm>
#include <limits>

namespace attest {

std::int64_t TableReader::slot(std::int64_t row, std::int64_t column) const {
  std::int64_t at = 0;
  const bool overflow =
      __builtin_mul_overflow(row, table_.size(1), &at) || __builtin_add_overflow(at, column, &at);
  const bool inside = !overflow && row >= 0 && row < table_.size(0) && at >= 0 &&
                      at < static_cast<std::int64_t>(table_.values.size());
  return inside ? table_.values[static_cast<std::size_t>(at)] : outside_slot;
}

std::int64_t TableReader::walkable(std::int64_t column, std::int64_t count) const {
  const auto cells = static_cast<std::int64_t>(table_.values.size());
  const bool stays_in_int64 = column <= std::numeric_limits<std::int64_t>::max() - cells;
  return stays_in_int64 ? std::clamp<std::int64_t>(count, 0, cells) : 0;
}

void TableReader::read(RowKeys& keys, std::int64_t row, std::int64_t column,
                       std::int64_t count) const {
  const std::int64_t walked = walkable(column, count);
  const auto follows = [&](std::int64_t at, std::int64_t first, std::int64_t run) {
    const std::int64_t next = slot(row, at);
    return next >= first && next - first == run;
  };
  for (std::int64_t j = 0; j < walked;) {
    const std::int64_t first = slot(row, column + j);
    std::int64_t run = 1;
    if (first < 0) {
      keys.read_outside(1);
    } else {
      // Neighbouring slots are looked up together.
      while (j + run < walked && follows(column + j + run, first, run)) ++run;
      keys.read(first, run);
    }
    j += run;
  }
  keys.read_outside(count - walked);
}

}  // namespace attest
