#include "backends/scalar/elements.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace attest {
namespace {

std::uint16_t load16(const std::byte* from, std::int64_t i) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from + 2 * i, 2);
  return bits;
}

/// Subnormals come out right because the multiplication is exact: no table, no branch.
float widen_f16(std::uint32_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const float finite = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t value =
      magnitude >= (0x7c00U << 13) ? magnitude | 0x7f800000U : std::bit_cast<std::uint32_t>(finite);
  return std::bit_cast<float>(value | sign);
}

std::array<float, 256> table_of(Dtype dtype) {
  std::array<float, 256> table{};
  for (std::uint32_t bits = 0; bits < 256; ++bits) table[bits] = decode(dtype, bits);
  return table;
}

const std::array<float, 256>& fp8_table(Dtype dtype) {
  static const std::array<float, 256> e4m3fn = table_of(Dtype::fp8_e4m3fn);
  static const std::array<float, 256> e4m3fnuz = table_of(Dtype::fp8_e4m3fnuz);
  return dtype == Dtype::fp8_e4m3fn ? e4m3fn : e4m3fnuz;
}

float round_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
  return value != value ? value : std::bit_cast<float>(rounded);
}

float round_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0xfffU + ((bits >> 13) & 1U)) & 0xffffe000U;
  // Below 2^-14 the spacing is 2^-24, which is the ulp of 0.75.
  const float subnormal = (value + 0.75F) - 0.75F;
  if (value != value) return value;
  return value < 0x1p-14F ? subnormal : std::bit_cast<float>(rounded);
}

/// The nearest value of `dtype` that is not larger in magnitude than `value`.
std::uint32_t encode_toward_zero(Dtype dtype, float value) {
  const std::uint32_t nearest = encode(dtype, value);
  const bool grew = std::fabs(decode(dtype, nearest)) > std::fabs(value);
  return grew ? nearest - 1 : nearest;  // magnitudes are ordered like their bits
}

}  // namespace

void widen(Dtype dtype, const std::byte* from, std::int64_t count, float* to) {
  switch (dtype) {
    case Dtype::bf16:
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(load16(from, i)) << 16);
      }
      return;
    case Dtype::f16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = widen_f16(load16(from, i));
      return;
    case Dtype::f32:
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    default:
      break;
  }
  const std::array<float, 256>& table = fp8_table(dtype);
  for (std::int64_t i = 0; i < count; ++i) to[i] = table[std::to_integer<std::size_t>(from[i])];
}

void round_to(Dtype dtype, float* values, std::int64_t count) {
  if (dtype == Dtype::bf16) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = round_bf16(values[i]);
  } else if (dtype == Dtype::f16) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = round_f16(values[i]);
  }
}

void narrow(Dtype dtype, const float* from, std::int64_t count, std::byte* to, bool toward_zero) {
  const std::size_t bytes = size_bytes(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits =
        toward_zero ? encode_toward_zero(dtype, from[i]) : encode(dtype, from[i]);
    std::memcpy(to + static_cast<std::size_t>(i) * bytes, &bits, bytes);  // little endian
  }
}

}  // namespace attest
