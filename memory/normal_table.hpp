#pragma once

#include <array>
#include <cstdint>

#include "contracts/dtype.hpp"
#include "memory/counter_hash.hpp"

namespace attest {

/// Bits of the float32 `f32_bits` (finite, normal or zero) rounded to nearest, ties to even, with
/// integer arithmetic alone; the same result as encode(). Out of range as encode() has it.
std::uint32_t round_f32_bits(Dtype dtype, std::uint32_t f32_bits);

/// The standard normal distribution in 4096 equally likely values times 2^exponent, as bit patterns
/// of one dtype: entry i is the quantile of (i + 0.5) / 4096, rounded once. Ascending, symmetric
/// (entry 4095 - i is minus entry i), variance 0.9996 before rounding, largest value 3.67.
struct NormalTable {
  std::array<std::uint32_t, normal_entries> bits32;  ///< f32; zero in the other dtypes
  std::array<std::uint16_t, normal_entries> bits16;  ///< f16, bf16
  std::array<std::uint8_t, normal_entries> bits8;    ///< fp8
  std::array<float, normal_entries> values;          ///< the same, decoded

  /// Entry i, from its bits in the table's dtype.
  void set(std::size_t i, Dtype dtype, std::uint32_t bits);
};

/// The table of a floating dtype; built on first use, then shared by all threads.
/// \param exponent  one of `normal_exponents`. \throws std::invalid_argument otherwise.
const NormalTable& normal_table(Dtype dtype, int exponent = 0);
inline constexpr std::array normal_exponents = {0, 4, -2};

}  // namespace attest
