#pragma once

#include <bit>
#include <cstdint>

#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip {

// Elements as they lie in memory. Our own structs and integer conversions instead of each vendor's
// types: the same bits on the host, on CUDA and on ROCm, NaN payloads included. Each conversion
// agrees with contracts/dtype.hpp for every input.

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};
/// OCP float8: bias 7, NaN 0x7f and 0xff, no infinity.
struct E4m3fn {
  std::uint8_t bits;
};
/// AMD CDNA3's float8: bias 8, the only NaN is 0x80, no infinity, no negative zero.
struct E4m3fnuz {
  std::uint8_t bits;
};

__host__ __device__ constexpr float to_float(float value) { return value; }

__host__ __device__ constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Shifts the exponent and mantissa of a small format into a float's place. A denormal becomes
/// normal by a subtraction of two normal numbers, so no mode that flushes denormals matters.
template <int mantissa_bits, int bias>
__host__ __device__ constexpr float widened(std::uint32_t magnitude) {
  constexpr int shift = 23 - mantissa_bits;
  const std::uint32_t moved = (magnitude << shift) + (static_cast<std::uint32_t>(127 - bias) << 23);
  if ((magnitude >> mantissa_bits) != 0) return std::bit_cast<float>(moved);
  constexpr std::uint32_t smallest_normal = static_cast<std::uint32_t>(128 - bias) << 23;
  return std::bit_cast<float>(moved + (1U << 23)) - std::bit_cast<float>(smallest_normal);
}

__host__ __device__ constexpr float with_sign(float magnitude, std::uint32_t sign_bit) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign_bit);
}

__host__ __device__ constexpr float to_float(Fp16 value) {
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude << 13));
  return with_sign(widened<10, 15>(magnitude), sign);
}

__host__ __device__ constexpr float to_float(E4m3fn value) {
  const std::uint32_t magnitude = value.bits & 0x7fU;
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x80U) << 24;
  if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
  return with_sign(widened<3, 7>(magnitude), sign);
}

__host__ __device__ constexpr float to_float(E4m3fnuz value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x80U) << 24;
  if (value.bits == 0x80U) return std::bit_cast<float>(sign | 0x7fc00000U);
  return with_sign(widened<3, 8>(value.bits & 0x7fU), sign);
}

/// The low `drop` bits rounded away to nearest, ties to even; a carry runs into the exponent.
template <int drop>
__host__ __device__ constexpr std::uint32_t rounded(std::uint32_t bits) {
  return (bits + ((1U << (drop - 1)) - 1U) + ((bits >> drop) & 1U)) >> drop;
}

/// Bits of `value` rounded to nearest even; past the largest number comes infinity. A NaN is made
/// quiet and keeps the upper bits of its payload.
__host__ __device__ constexpr Bf16 to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<std::uint16_t>(rounded<16>(bits))};
}

__host__ __device__ constexpr Fp16 to_fp16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(0x7e00U)};
  if (magnitude >= 0x477ff000U) {  // 65520, half way to the number after the largest
    result = 0x7c00U;
  } else if (magnitude >= 0x38800000U) {  // 2^-14, the smallest normal
    result = rounded<13>(magnitude - (112U << 23));
  } else {
    // Beside 0.5 a float's last place is 2^-24, the step of fp16's denormals: the addition rounds.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U;
  }
  return {static_cast<std::uint16_t>(sign | result)};
}

/// Overloads by a tag, for kernels that are templates over their output type.
__host__ __device__ constexpr void store(Bf16& to, float value) { to = to_bf16(value); }
__host__ __device__ constexpr void store(Fp16& to, float value) { to = to_fp16(value); }
__host__ __device__ constexpr void store(float& to, float value) { to = value; }

}  // namespace attest::hip
