#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace attest::amx {

// Eight floats at a time, x86-64-v3 and no libm: the same bits on every machine that runs the
// kernel. Fused multiply-adds are written out; the files that include this are built with
// -ffp-contract=off.

/// e^x for x <= 88; 0 below -87.3, NaN for NaN. Relative error <= 2e-7 (vector_math_test.cpp).
/// Cephes' expf: x = n ln 2 + r with ln 2 in two parts, a polynomial of degree 6 in r.
inline __m256 exp8(__m256 x) {
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341F)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375F), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4F), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4F);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1F));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1.0F)));
  // 2^n by adding to the exponent; n >= -126 here, so the result stays normal.
  const __m256i power = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  const __m256 result = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), power));
  const __m256 tiny = _mm256_cmp_ps(x, _mm256_set1_ps(-87.3F), _CMP_LT_OQ);
  return _mm256_blendv_ps(result, _mm256_setzero_ps(), tiny);
}

/// 2^x for x <= 127; 0 from -127 down, NaN for NaN. Relative error <= 4e-7 from -125.5 up
/// (vector_math_test.cpp); between, where results become denormal, within 2^-126.
/// x = n + r, the nearest integer taken by adding and subtracting 1.5 * 2^23; a polynomial of
/// degree 5 in r that is exactly 1 at 0, interpolated at Chebyshev's nodes.
inline __m256 exp2_8(__m256 x) {
  const __m256 magic = _mm256_set1_ps(12582912.0F);
  // max gives its second operand when one is NaN. At -127 the exponent field of 1.0 becomes 0.
  x = _mm256_max_ps(_mm256_set1_ps(-127.0F), x);
  const __m256 shifted = _mm256_add_ps(x, magic);
  const __m256 r = _mm256_sub_ps(x, _mm256_sub_ps(shifted, magic));
  __m256 p = _mm256_set1_ps(1.3381302e-3F);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(9.6663684e-3F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.5503812e-2F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.2402235F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.69314718F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  // n stands in the low bits of `shifted`; the rest of it and a NaN's payload leave at the top.
  const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), power));
}

/// tanh x, saturating instead of overflowing. Relative error <= 1e-6.
inline __m256 tanh8(__m256 x) {
  const __m256 sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0F));
  const __m256 a = _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x);
  // 1 - 2 / (e^2a + 1) cancels near zero; there the series is better.
  const __m256 e = exp8(_mm256_min_ps(_mm256_add_ps(a, a), _mm256_set1_ps(40.0F)));
  const __m256 large =
      _mm256_sub_ps(_mm256_set1_ps(1.0F),
                    _mm256_div_ps(_mm256_set1_ps(2.0F), _mm256_add_ps(e, _mm256_set1_ps(1.0F))));
  const __m256 a2 = _mm256_mul_ps(a, a);
  __m256 series = _mm256_set1_ps(62.0F / 2835.0F);
  series = _mm256_fmadd_ps(series, a2, _mm256_set1_ps(-17.0F / 315.0F));
  series = _mm256_fmadd_ps(series, a2, _mm256_set1_ps(2.0F / 15.0F));
  series = _mm256_fmadd_ps(series, a2, _mm256_set1_ps(-1.0F / 3.0F));
  series = _mm256_fmadd_ps(_mm256_mul_ps(series, a2), a, a);
  const __m256 small = _mm256_cmp_ps(a, _mm256_set1_ps(0.3F), _CMP_LT_OQ);
  const __m256 magnitude = _mm256_blendv_ps(large, series, small);
  // min drops a NaN above: put it back.
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_blendv_ps(_mm256_or_ps(magnitude, sign), x, nan);
}

/// Bits of eight bf16, rounded to nearest even, in the low halves of 32-bit lanes. NaN stays NaN.
inline __m256i to_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
}

/// Rows become columns, of 32-bit lanes.
inline void transpose8(__m256i (&lanes)[8]) {
  __m256 v[8];
  for (std::size_t i = 0; i < 8; ++i) v[i] = _mm256_castsi256_ps(lanes[i]);
  __m256 t[8];
  for (std::size_t i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
  }
  __m256 u[8];
  for (std::size_t h = 0; h < 2; ++h) {
    u[4 * h + 0] = _mm256_shuffle_ps(t[4 * h], t[4 * h + 2], 0x44);
    u[4 * h + 1] = _mm256_shuffle_ps(t[4 * h], t[4 * h + 2], 0xee);
    u[4 * h + 2] = _mm256_shuffle_ps(t[4 * h + 1], t[4 * h + 3], 0x44);
    u[4 * h + 3] = _mm256_shuffle_ps(t[4 * h + 1], t[4 * h + 3], 0xee);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    lanes[i] = _mm256_castps_si256(_mm256_permute2f128_ps(u[i], u[i + 4], 0x20));
    lanes[i + 4] = _mm256_castps_si256(_mm256_permute2f128_ps(u[i], u[i + 4], 0x31));
  }
}

}  // namespace attest::amx
