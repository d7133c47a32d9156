#include "contracts/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace attest {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  std::string_view torch_name;
  std::size_t bytes;
};

constexpr std::array rows = {
    Row{Dtype::f32, "f32", "float32", 4},
    Row{Dtype::f16, "f16", "float16", 2},
    Row{Dtype::bf16, "bf16", "bfloat16", 2},
    Row{Dtype::fp8_e4m3fn, "fp8_e4m3fn", "float8_e4m3fn", 1},
    Row{Dtype::fp8_e4m3fnuz, "fp8_e4m3fnuz", "float8_e4m3fnuz", 1},
    Row{Dtype::int32, "int32", "int32", 4},
    Row{Dtype::int64, "int64", "int64", 8},
    Row{Dtype::uint8, "uint8", "uint8", 1},
    Row{Dtype::boolean, "bool", "bool", 1},
};

const Row& row_of(Dtype dtype) { return rows[static_cast<std::size_t>(dtype)]; }

/// Layout of a small binary float: `exponent` + `mantissa` bits below a sign bit.
struct Layout {
  int exponent;
  int mantissa;
  int bias;
  bool infinity;          ///< the all-ones exponent is reserved (IEEE)
  std::uint32_t nan;      ///< the quiet NaN
  std::uint32_t largest;  ///< bits of the largest finite value, where out of range saturates to it
};

constexpr Layout layout_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {5, 10, 15, true, 0x7e00, 0};
    case Dtype::fp8_e4m3fn:
      return {4, 3, 7, false, 0x7f, 0x7e};
    case Dtype::fp8_e4m3fnuz:
      return {4, 3, 8, false, 0x80, 0x7f};
    default:
      return {8, 7, 127, true, 0x7fc0, 0};  // bf16
  }
}

bool is_nan(const Layout& layout, Dtype dtype, std::uint32_t bits) {
  if (dtype == Dtype::fp8_e4m3fn) return (bits & 0x7f) == 0x7f;
  if (dtype == Dtype::fp8_e4m3fnuz) return bits == 0x80;
  const std::uint32_t magnitude = bits & ((1U << (layout.exponent + layout.mantissa)) - 1);
  return magnitude > (((1U << layout.exponent) - 1U) << layout.mantissa);
}

/// Every value of these formats is a float32, so ldexp is exact.
float decode_small(Dtype dtype, std::uint32_t bits) {
  const Layout layout = layout_of(dtype);
  if (is_nan(layout, dtype, bits)) {
    // Keep f16 payloads: they name the poisoned region.
    const std::uint32_t payload = dtype == Dtype::f16 ? (bits & 0x3ff) << 13 : 0x400000;
    const std::uint32_t sign = (bits >> (layout.exponent + layout.mantissa)) & 1U;
    return std::bit_cast<float>((sign << 31) | 0x7f800000U | payload);
  }
  const bool negative = ((bits >> (layout.exponent + layout.mantissa)) & 1U) != 0;
  const auto exponent = static_cast<int>((bits >> layout.mantissa) & ((1U << layout.exponent) - 1));
  const auto mantissa = static_cast<int>(bits & ((1U << layout.mantissa) - 1));
  float magnitude = 0;
  if (layout.infinity && exponent == (1 << layout.exponent) - 1) {
    magnitude = std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(mantissa), 1 - layout.bias - layout.mantissa);
  } else {
    magnitude = std::ldexp(static_cast<float>(mantissa + (1 << layout.mantissa)),
                           exponent - layout.bias - layout.mantissa);
  }
  return negative ? -magnitude : magnitude;
}

/// Rounds in double, where scaling by powers of two is exact, to a multiple of the target's ulp.
std::uint32_t encode_small(Dtype dtype, float value) {
  const Layout layout = layout_of(dtype);
  if (std::isnan(value)) return layout.nan;
  const std::uint32_t sign = std::signbit(value) ? 1U << (layout.exponent + layout.mantissa) : 0U;
  const double magnitude = std::fabs(static_cast<double>(value));
  const int min_exponent = 1 - layout.bias;
  int exponent = min_exponent;
  if (magnitude > 0 && std::isfinite(magnitude)) {
    exponent = std::max(std::ilogb(magnitude), min_exponent);
  }
  // nearbyint rounds ties to even in the default rounding mode.
  double steps = std::isfinite(magnitude)
                     ? std::nearbyint(std::ldexp(magnitude, layout.mantissa - exponent))
                     : magnitude;
  if (steps >= std::ldexp(2.0, layout.mantissa)) {
    ++exponent;
    steps /= 2;
  }
  const std::uint32_t reserved = layout.infinity ? 1U : 0U;
  const std::uint32_t top = (1U << layout.exponent) - 1U - reserved;
  std::uint32_t magnitude_bits = 0;
  if (!std::isfinite(steps) || exponent + layout.bias > static_cast<int>(top)) {
    magnitude_bits =
        layout.infinity ? ((1U << layout.exponent) - 1U) << layout.mantissa : layout.largest;
  } else if (steps < std::ldexp(1.0, layout.mantissa)) {
    magnitude_bits = static_cast<std::uint32_t>(steps);  // subnormal
  } else {
    const auto biased = static_cast<std::uint32_t>(exponent + layout.bias);
    const auto fraction = static_cast<std::uint32_t>(steps) - (1U << layout.mantissa);
    magnitude_bits = (biased << layout.mantissa) | fraction;
    if (!layout.infinity) magnitude_bits = std::min(magnitude_bits, layout.largest);
  }
  // fnuz has no negative zero: that pattern is its NaN.
  if (dtype == Dtype::fp8_e4m3fnuz && magnitude_bits == 0) return 0;
  return sign | magnitude_bits;
}

std::uint32_t encode_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return (bits >> 16) | 0x40U;
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}

}  // namespace

std::size_t size_bytes(Dtype dtype) { return row_of(dtype).bytes; }

std::string_view name(Dtype dtype) { return row_of(dtype).name; }

std::optional<Dtype> dtype_from_name(std::string_view text) {
  for (const Row& row : rows) {
    if (text == row.name || text == row.torch_name) return row.dtype;
  }
  return std::nullopt;
}

bool is_floating(Dtype dtype) { return dtype <= Dtype::fp8_e4m3fnuz; }

bool is_fp8(Dtype dtype) { return dtype == Dtype::fp8_e4m3fn || dtype == Dtype::fp8_e4m3fnuz; }

double unit_roundoff(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return 0x1p-24;
    case Dtype::f16:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-8;
    case Dtype::fp8_e4m3fn:
    case Dtype::fp8_e4m3fnuz:
      return 0x1p-4;
    default:
      return 0;
  }
}

float decode(Dtype dtype, std::uint32_t bits) {
  if (dtype == Dtype::f32) return std::bit_cast<float>(bits);
  if (dtype == Dtype::bf16) return std::bit_cast<float>(bits << 16);
  return decode_small(dtype, bits);
}

std::uint32_t encode(Dtype dtype, float value) {
  if (dtype == Dtype::f32) return std::bit_cast<std::uint32_t>(value);
  if (dtype == Dtype::bf16) return encode_bf16(value);
  return encode_small(dtype, value);
}

}  // namespace attest
