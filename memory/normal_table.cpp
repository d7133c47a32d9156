#include "memory/normal_table.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

namespace attest {
namespace {

constexpr std::array<std::uint32_t, normal_entries / 2> upper_half = {
#include "memory/normal_quantiles.inc"
};

/// A binary float of at most 16 bits.
struct Format {
  int mantissa;
  int bias;
  int sign_bit;
  std::uint32_t largest;   ///< bits of the largest finite value
  std::uint32_t overflow;  ///< what out of range becomes
};

Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {10, 15, 15, 0x7bff, 0x7c00};
    case Dtype::fp8_e4m3fn:
      return {3, 7, 7, 0x7e, 0x7e};
    case Dtype::fp8_e4m3fnuz:
      return {3, 8, 7, 0x7f, 0x7f};
    default:  // bf16
      return {7, 127, 15, 0x7f7f, 0x7f80};
  }
}

/// value / 2^shift, ties to even.
std::uint32_t shift_to_nearest(std::uint32_t value, int shift) {
  if (shift > 25) return 0;  // below half of the last place: value has 24 bits
  const std::uint32_t half = (1U << (shift - 1)) - 1U;
  return (value + half + ((value >> shift) & 1U)) >> shift;
}

/// Entry i of the full table times 2^exponent, as float32 bits: quantiles are normal numbers, so
/// the exponent field can simply be raised.
std::uint32_t quantile_bits(std::size_t i, int exponent) {
  constexpr std::size_t half = upper_half.size();
  const std::uint32_t magnitude = i < half ? upper_half[half - 1 - i] : upper_half[i - half];
  const std::uint32_t scaled =
      magnitude + (static_cast<std::uint32_t>(exponent) << 23);  // wraps for negative exponents
  return scaled | (i < half ? 0x80000000U : 0U);
}

std::unique_ptr<const NormalTable> build(Dtype dtype, int exponent) {
  auto table = std::make_unique<NormalTable>();
  for (std::size_t i = 0; i < normal_entries; ++i) {
    table->set(i, dtype, round_f32_bits(dtype, quantile_bits(i, exponent)));
  }
  return table;
}

}  // namespace

void NormalTable::set(std::size_t i, Dtype dtype, std::uint32_t bits) {
  const std::size_t bytes = size_bytes(dtype);
  bits32[i] = bytes == 4 ? bits : 0;
  bits16[i] = bytes == 2 ? static_cast<std::uint16_t>(bits) : std::uint16_t{0};
  bits8[i] = bytes == 1 ? static_cast<std::uint8_t>(bits) : std::uint8_t{0};
  values[i] = decode(dtype, bits);
}

std::uint32_t round_f32_bits(Dtype dtype, std::uint32_t f32_bits) {
  if (dtype == Dtype::f32) return f32_bits;
  const Format format = format_of(dtype);
  const std::uint32_t sign = (f32_bits >> 31) << format.sign_bit;
  const auto biased = static_cast<int>((f32_bits >> 23) & 0xffU);
  if (biased == 0) return dtype == Dtype::fp8_e4m3fnuz ? 0 : sign;
  const int exponent = biased - 127 + format.bias;  // biased exponent in the target
  const std::uint32_t significand = (f32_bits & 0x7fffffU) | 0x800000U;
  const int subnormal = std::max(0, 1 - exponent);
  // A carry out of the mantissa runs into the exponent field, which is what rounding up means.
  const std::uint32_t steps = shift_to_nearest(significand, 23 - format.mantissa + subnormal);
  const std::uint32_t lifted =
      steps + (static_cast<std::uint32_t>(std::max(exponent, 1) - 1) << format.mantissa);
  const std::uint32_t magnitude = lifted > format.largest ? format.overflow : lifted;
  // fnuz has no negative zero: that pattern is its NaN.
  if (dtype == Dtype::fp8_e4m3fnuz && magnitude == 0) return 0;
  return sign | magnitude;
}

const NormalTable& normal_table(Dtype dtype, int exponent) {
  const auto* const at = std::find(normal_exponents.begin(), normal_exponents.end(), exponent);
  if (!is_floating(dtype) || at == normal_exponents.end()) {
    throw std::invalid_argument("normal_table: no table of " + std::string(name(dtype)) +
                                " times 2^" + std::to_string(exponent));
  }
  struct Slot {
    std::once_flag once;
    std::unique_ptr<const NormalTable> table;
  };
  static std::array<Slot, 5 * normal_exponents.size()> slots;  // five floating dtypes
  Slot& slot = slots[static_cast<std::size_t>(dtype) * normal_exponents.size() +
                     static_cast<std::size_t>(at - normal_exponents.begin())];
  std::call_once(slot.once, [&] { slot.table = build(dtype, exponent); });
  return *slot.table;
}

}  // namespace attest
