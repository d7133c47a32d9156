#include "backends/scalar/table_walk.hpp"

#include "backends/scalar/operands.hpp"

namespace attest {

std::string place(const char* name, std::int64_t row, std::int64_t column) {
  return std::string(name) + "[" + std::to_string(row) + "][" + std::to_string(column) + "]";
}

std::int64_t table_entry(const IntArray& table, std::int64_t row, std::int64_t column,
                         const char* name) {
  const std::int64_t width = table.size(1);
  const bool dense = table.meta.stride(0) == width;
  const auto count = static_cast<std::int64_t>(table.values.size());
  const bool row_exists = row >= 0 && row < table.size(0) && width > 0;
  const bool in_row = column >= 0 && column < width;
  if (row_exists && (in_row || (dense && column >= 0 && column < count - row * width))) {
    return table.values[static_cast<std::size_t>(row * width + column)];
  }
  throw KernelRefusal(place(name, row, column) + " is outside the table of " +
                      std::to_string(table.size(0)) + " rows and " + std::to_string(width) +
                      " columns");
}

std::int64_t array_entry(const IntArray& array, std::int64_t i, const char* name) {
  const auto count = static_cast<std::int64_t>(array.values.size());
  if (i >= 0 && i < count) return array.values[static_cast<std::size_t>(i)];
  throw KernelRefusal(std::string(name) + "[" + std::to_string(i) + "] is outside the array of " +
                      std::to_string(count));
}

void refuse_outside_pool(const std::string& place, std::int64_t value) {
  throw KernelRefusal(place + " = " + std::to_string(value) + " is outside the pool");
}

}  // namespace attest
