#include "contracts/signatures/table_reader.hpp"

#include <algorithm>

namespace attest {

std::int64_t TableReader::slot(std::int64_t row, std::int64_t column) const {
  std::int64_t at = 0;
  const bool overflow =
      __builtin_mul_overflow(row, table_.size(1), &at) || __builtin_add_overflow(at, column, &at);
  const bool inside = !overflow && row >= 0 && row < table_.size(0) && at >= 0 &&
                      at < static_cast<std::int64_t>(table_.values.size());
  return inside ? table_.values[static_cast<std::size_t>(at)] : outside_slot;
}

void TableReader::read(RowKeys& keys, std::int64_t row, std::int64_t column,
                       std::int64_t count) const {
  const auto cells = static_cast<std::int64_t>(table_.values.size());
  const std::int64_t walked = std::clamp<std::int64_t>(count, 0, cells);
  for (std::int64_t j = 0; j < walked;) {
    const std::int64_t first = slot(row, column + j);
    std::int64_t run = 1;
    if (first < 0) {
      keys.read_outside(1);
    } else {
      // Neighbouring slots are looked up together.
      while (j + run < walked && slot(row, column + j + run) == first + run) ++run;
      keys.read(first, run);
    }
    j += run;
  }
  keys.read_outside(count - walked);
}

}  // namespace attest
