#pragma once

#include <cstdint>
#include <string>

#include "contracts/call.hpp"

namespace attest {

/// Entry (row, column) of a two-dimensional table as a kernel's pointer arithmetic finds it: a
/// column past the end of a dense row is the next row's entry.
/// \throws KernelRefusal naming `name`, the place and the sizes when that lies outside the values.
std::int64_t table_entry(const IntArray& table, std::int64_t row, std::int64_t column,
                         const char* name);

/// Element i of a one-dimensional array. \throws KernelRefusal
std::int64_t array_entry(const IntArray& array, std::int64_t i, const char* name);

/// "block_table[1][7]"
std::string place(const char* name, std::int64_t row, std::int64_t column);

/// "block_table[1][7] = 99999 is outside the pool"
[[noreturn]] void refuse_outside_pool(const std::string& place, std::int64_t value);

}  // namespace attest
