#pragma once

#include <bit>
#include <cstdint>

namespace attest {

/// e^x in float32 from adds and multiplies alone, so that every machine gives the same bits and the
/// compiler can vectorise a loop over it (libm's expf differs between CPUs in the last bit).
/// Relative error < 2e-7 (swept by softmax_exp_test.cpp); 0 below -86.5, infinity above 88.7; NaN
/// stays NaN. Method: x = n ln 2 + r, |r| <= ln 2 / 2, Taylor to r^7 (remainder 6e-9), 2^n in the
/// exponent bits.
inline float softmax_exp(float x) {
  constexpr float low = -86.5F;  // n = -125: the factor 2^(n-1) below is still normal
  constexpr float high = 88.7F;
  // Adding 1.5 * 2^23 leaves round(x / ln 2) in the low mantissa bits.
  constexpr float shifter = 12582912.0F;
  const float clamped = x < low ? low : (x > high ? high : x);
  const float shifted = clamped * 1.44269504F + shifter;
  const float n = shifted - shifter;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;
  float poly = 1.98412698e-4F;
  poly = poly * r + 1.38888889e-3F;
  poly = poly * r + 8.33333333e-3F;
  poly = poly * r + 4.16666667e-2F;
  poly = poly * r + 1.66666667e-1F;
  poly = poly * r + 0.5F;
  poly = poly * (r * r) + r;
  const std::uint32_t exponent =
      std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shifter);
  // n reaches 128 at the upper end, where 2^n alone is no float: 2^(n-1), then 2.
  const float half_scale = std::bit_cast<float>((exponent + 126U) << 23);
  const float value = (poly + 1.0F) * half_scale * 2.0F;
  return x < low ? 0.0F : (x > high ? value * 0x1p127F * 0x1p127F : value);
}

}  // namespace attest
