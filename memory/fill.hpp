#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "contracts/dtype.hpp"
#include "memory/counter_hash.hpp"
#include "memory/value_table.hpp"

namespace attest {

// The fill loops: a hash, shifts, a table look-up, a store. No floating-point arithmetic, so every
// compiler and device gives the same bits. The templates need nothing but a key and a table.

/// out[d] = table[normal_index(key, d)], d < count. `out` may be unaligned.
template <class Element>
inline void gather_normal(std::uint64_t key, const Element* table, std::byte* out,
                          std::int64_t count) {
  std::int64_t d = 0;
  for (; d + elements_per_hash <= count; d += elements_per_hash) {
    const std::uint64_t hash = block_hash(key, d / elements_per_hash);
    const Element four[elements_per_hash] = {table[lane_index(hash, 0)], table[lane_index(hash, 1)],
                                             table[lane_index(hash, 2)],
                                             table[lane_index(hash, 3)]};
    std::memcpy(out + static_cast<std::size_t>(d) * sizeof(Element), four, sizeof four);
  }
  for (; d < count; ++d) {
    std::memcpy(out + static_cast<std::size_t>(d) * sizeof(Element), &table[normal_index(key, d)],
                sizeof(Element));
  }
}

/// out[d] = is_negative(key, d) ? minus : plus, first <= d < last.
template <class Element>
inline void fill_signs(std::uint64_t key, Element plus, Element minus, std::byte* out,
                       std::int64_t first, std::int64_t last) {
  for (std::int64_t d = first; d < last;) {
    const std::uint64_t signs = block_hash(key, d / 64);
    const std::int64_t end = last < (d / 64 + 1) * 64 ? last : (d / 64 + 1) * 64;
    for (; d < end; ++d) {
      const Element value = ((signs >> (d % 64)) & 1U) != 0 ? minus : plus;
      std::memcpy(out + static_cast<std::size_t>(d) * sizeof(Element), &value, sizeof(Element));
    }
  }
}

/// Elements of one row, either as bits of a dtype or decoded to double.
struct RowOut {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  bool decoded = false;
};

/// N(0, 1) * 2^exponent in `dtype`: elements 0 .. count-1 of the row `key`.
void write_normal(const RowOut& out, Dtype dtype, std::uint64_t key, int exponent = 0);
/// The same of another distribution.
void write_values(const RowOut& out, Dtype dtype, std::uint64_t key, Distribution distribution);
/// +-amplitude by the pattern `key` in elements first .. count-1. The amplitude must be a value of
/// `dtype`.
void write_signs(const RowOut& out, Dtype dtype, std::uint64_t key, float amplitude,
                 std::int64_t first = 0);
/// +-amplitude with the signs that write_normal gives the row `key` in elements first .. count-1.
void write_signs_of_normal(const RowOut& out, Dtype dtype, std::uint64_t key, float amplitude);

/// `value` in element `at`, if the row has it. The value must be one of `dtype`.
void write_element(const RowOut& out, Dtype dtype, std::int64_t at, float value);

/// A destination of `count` elements. \throws std::invalid_argument naming `what` when `bytes` is
/// not exactly that long.
RowOut row_of_bits(std::span<std::byte> bytes, Dtype dtype, std::int64_t count, const char* what);
RowOut row_of_doubles(std::span<double> values, std::int64_t count, const char* what);

}  // namespace attest
