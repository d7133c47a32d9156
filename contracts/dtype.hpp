#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attest {

/// Element types of tensors and metadata arrays, named as the kernels' frameworks name them.
enum class Dtype : std::uint8_t {
  f32,
  f16,
  bf16,
  fp8_e4m3fn,    ///< OCP: bias 7, max 448, NaN 0x7f/0xff, no infinity
  fp8_e4m3fnuz,  ///< AMD CDNA3: bias 8, max 240, NaN 0x80, no infinity, no negative zero
  int32,
  int64,
  uint8,
  boolean,
};

/// Bytes of one element.
std::size_t size_bytes(Dtype dtype);

/// Short name: "f32", "f16", "bf16", "fp8_e4m3fn", "fp8_e4m3fnuz", "int32", "int64", "uint8",
/// "bool".
std::string_view name(Dtype dtype);

/// Inverse of name(); also accepts torch's spelling ("bfloat16", "float8_e4m3fn", ...).
std::optional<Dtype> dtype_from_name(std::string_view text);

bool is_floating(Dtype dtype);
bool is_fp8(Dtype dtype);

/// Largest relative error of one round to nearest: half the gap above 1.
/// \returns 2^-24 f32, 2^-11 f16, 2^-8 bf16, 2^-4 fp8.
double unit_roundoff(Dtype dtype);

/// Value of an element's bits (low bits of `bits`; f32 uses all 32). Exact for every floating
/// dtype.
float decode(Dtype dtype, std::uint32_t bits);

/// Bits of `value` rounded to nearest, ties to even. Out of range: f32/f16/bf16 give infinity, fp8
/// saturates to its largest finite value (as the frameworks' casts do). NaN gives the quiet NaN.
std::uint32_t encode(Dtype dtype, float value);

}  // namespace attest
