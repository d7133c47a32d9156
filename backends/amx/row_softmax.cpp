#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "backends/amx/row_block.hpp"
#include "backends/amx/vector_math.hpp"

namespace attest::amx {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr float log2_e = 1.44269504088896341F;
constexpr int vector_rows = 8;

/// 2^x of one float through the vector code: the same bits as everywhere else.
float exp2_1(float x) { return _mm256_cvtss_f32(exp2_8(_mm256_set1_ps(x))); }

__m256 is_minus_infinity(__m256 x) {
  return _mm256_cmp_ps(x, _mm256_set1_ps(minus_infinity), _CMP_EQ_OQ);
}

/// Lanes of eight rows that do not see key j.
__m256 hidden(const Visibility& visible, int lane, int j) {
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(visible.first + lane));
  const __m256i last = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(visible.last + lane));
  const __m256i key = _mm256_set1_epi32(j);
  const __m256i seen_from_above = _mm256_cmpgt_epi32(last, key);
  __m256i out = _mm256_or_si256(_mm256_cmpgt_epi32(first, key),
                                _mm256_xor_si256(seen_from_above, _mm256_set1_epi32(-1)));
  if (visible.mask != nullptr) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(
        visible.mask + static_cast<std::ptrdiff_t>(j) * rows_per_block + lane);
    const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes));
    out = _mm256_or_si256(out, _mm256_cmpeq_epi32(bits, _mm256_setzero_si256()));
  }
  return _mm256_castsi256_ps(out);
}

/// Largest score of eight rows, in four chains.
__m256 largest(const float* s, int keys) {
  const auto score = [s](int j) {
    return _mm256_load_ps(s + static_cast<std::ptrdiff_t>(j) * rows_per_block);
  };
  __m256 a = _mm256_set1_ps(minus_infinity);
  __m256 b = a;
  __m256 c = a;
  __m256 d = a;
  int j = 0;
  for (; j + 4 <= keys; j += 4) {
    a = _mm256_max_ps(a, score(j));
    b = _mm256_max_ps(b, score(j + 1));
    c = _mm256_max_ps(c, score(j + 2));
    d = _mm256_max_ps(d, score(j + 3));
  }
  for (; j < keys; ++j) a = _mm256_max_ps(a, score(j));
  return _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
}

/// Two keys' probabilities of eight rows as bf16 pairs, the first in the low half. Rounded to
/// nearest, ties away from zero: one addition. A NaN that comes from a tile has 16 zero bits to
/// spare, so the carry cannot leave its mantissa.
__m256i bf16_pairs(__m256 first, __m256 second) {
  const __m256i half = _mm256_set1_epi32(0x8000);
  const __m256i low = _mm256_srli_epi32(_mm256_add_epi32(_mm256_castps_si256(first), half), 16);
  return _mm256_blend_epi16(low, _mm256_add_epi32(_mm256_castps_si256(second), half), 0xaa);
}

/// P of eight rows and 16 keys from pairs of keys; `to` is the first row's.
void store_pairs(__m256i (&pairs)[vector_rows], Bf16* to) {
  transpose8(pairs);
  for (int r = 0; r < vector_rows; ++r, to += keys_per_block) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), pairs[r]);
  }
}

}  // namespace

/// Scale and cap where they cannot be part of the exponent, hidden keys, the defect: in place.
void RowBlock::prepare_scores(int lane, int keys, const Visibility& visible, bool raw) {
  const bool capped = shape_.softcap > 0;
  const __m256 scale = _mm256_set1_ps(raw ? 1.0F : shape_.scale);
  const __m256 cap = _mm256_set1_ps(shape_.softcap);
  for (int j = 0; j < keys; ++j) {
    float* const at = s_ + static_cast<std::ptrdiff_t>(j) * rows_per_block + lane;
    __m256 s = _mm256_mul_ps(_mm256_load_ps(at), scale);
    if (capped) s = _mm256_mul_ps(tanh8(_mm256_div_ps(s, cap)), cap);
    if (!visible.everything) {
      s = _mm256_blendv_ps(s, _mm256_set1_ps(minus_infinity), hidden(visible, lane, j));
    }
    if (shape_.defect == Defect::nan_key_dropped) {
      const __m256 nan = _mm256_cmp_ps(s, s, _CMP_UNORD_Q);
      s = _mm256_blendv_ps(s, _mm256_set1_ps(minus_infinity), nan);
    }
    _mm256_store_ps(at, s);
  }
}

/// Maximum, rescale factor, denominator and P of eight rows. 2^(s c - M), M the running maximum of
/// s c: one fused multiply-add a score, c = log2 e and, where the scores are not scaled yet, the
/// scale.
void RowBlock::probabilities(int lane, int keys, float to_log2) {
  const float* const s = s_ + lane;
  const auto score = [s](int j) {
    return _mm256_load_ps(s + static_cast<std::ptrdiff_t>(j) * rows_per_block);
  };
  const __m256 top = largest(s, keys);
  const __m256 c = _mm256_set1_ps(to_log2);
  const __m256 old = _mm256_load_ps(maximum_ + lane);
  const __m256 maximum = _mm256_max_ps(old, _mm256_mul_ps(top, c));
  // A row that saw nothing yet: 2^(-inf - 0) = 0, where 2^(-inf - -inf) would be NaN.
  __m256 base = _mm256_blendv_ps(maximum, _mm256_setzero_ps(), is_minus_infinity(maximum));
  if (shape_.defect == Defect::hidden_row_is_nan) base = maximum;
  const __m256 factor = exp2_8(_mm256_sub_ps(old, base));
  _mm256_store_ps(maximum_ + lane, maximum);
  _mm256_store_ps(factor_ + lane, factor);

  Bf16* const p = p_ + static_cast<std::ptrdiff_t>(lane) * keys_per_block;
  __m256 even = _mm256_setzero_ps();
  __m256 odd = _mm256_setzero_ps();
  const auto pair = [&](int j) {
    const __m256 first = exp2_8(_mm256_fmsub_ps(score(j), c, base));
    const __m256 second = exp2_8(_mm256_fmsub_ps(score(j + 1), c, base));
    even = _mm256_add_ps(even, first);
    odd = _mm256_add_ps(odd, second);
    return bf16_pairs(first, second);
  };
  int j = 0;
  for (; j + 16 <= keys; j += 16) {
    __m256i pairs[vector_rows] = {pair(j),     pair(j + 2),  pair(j + 4),  pair(j + 6),
                                  pair(j + 8), pair(j + 10), pair(j + 12), pair(j + 14)};
    store_pairs(pairs, p + j);
  }
  for (; j < padded(keys); j += 16) {
    __m256i pairs[vector_rows];
    for (int i = 0; i < vector_rows; ++i) {
      const int key = j + 2 * i;
      pairs[i] = key + 1 < keys ? pair(key) : _mm256_setzero_si256();
      if (key + 1 != keys) continue;
      const __m256 last = exp2_8(_mm256_fmsub_ps(score(key), c, base));
      even = _mm256_add_ps(even, last);
      pairs[i] = bf16_pairs(last, _mm256_setzero_ps());
    }
    store_pairs(pairs, p + j);
  }
  const __m256 carried = _mm256_mul_ps(_mm256_load_ps(denominator_ + lane), factor);
  _mm256_store_ps(denominator_ + lane, _mm256_add_ps(carried, _mm256_add_ps(even, odd)));
}

void RowBlock::softmax(const KeyPack& keys, const Visibility& visible, int lane) {
  // The largest score is the largest score times c only for a positive c. Whether rows beside this
  // one hide keys must not change its arithmetic, so hidden keys do not decide it.
  const bool raw = shape_.softcap == 0 && shape_.scale > 0;
  if (!raw || !visible.everything || shape_.defect == Defect::nan_key_dropped) {
    prepare_scores(lane * vector_rows, keys.keys(), visible, raw);
  }
  probabilities(lane * vector_rows, keys.keys(), raw ? shape_.scale * log2_e : log2_e);
}

/// Brings the sums to the new maxima.
void RowBlock::finish_softmax() {
  for (int r = 0; r < rows_; ++r) {
    if (factor_[r] == 1.0F) continue;
    float* const row = sums_ + static_cast<std::ptrdiff_t>(r) * v_padded_;
    const __m256 factor = _mm256_set1_ps(factor_[r]);
    for (int d = 0; d < v_padded_; d += vector_rows) {
      _mm256_store_ps(row + d, _mm256_mul_ps(_mm256_load_ps(row + d), factor));
    }
  }
}

void merge(float& to_maximum, float& to_denominator, float* to_sums, float from_maximum,
           float from_denominator, const float* from_sums, int dim) {
  if (from_denominator == 0) return;
  const float top = std::max(to_maximum, from_maximum);
  const float old_factor = to_denominator == 0 ? 0.0F : exp2_1(to_maximum - top);
  const float new_factor = exp2_1(from_maximum - top);
  for (int d = 0; d < dim; ++d) to_sums[d] = to_sums[d] * old_factor + from_sums[d] * new_factor;
  to_denominator = to_denominator * old_factor + from_denominator * new_factor;
  to_maximum = top;
}

void write_row(float maximum, float denominator, const float* sums, int dim, const float* sink,
               Bf16* out) {
  float factor = 1;
  if (sink != nullptr) {
    // The sink may dominate: both terms relative to the larger.
    const float logit = *sink * log2_e;
    const float top = denominator == 0 ? logit : std::max(maximum, logit);
    factor = denominator == 0 ? 0.0F : exp2_1(maximum - top);
    denominator = denominator * factor + exp2_1(logit - top);
  }
  const __m256 inverse = _mm256_set1_ps(denominator == 0 ? 0.0F : factor / denominator);
  const __m256 any = _mm256_castsi256_ps(_mm256_set1_epi32(denominator == 0 ? 0 : -1));
  const auto bits = [&](int d) {  // sums are padded to whole vectors, out is not
    return to_bf16(_mm256_and_ps(_mm256_mul_ps(_mm256_loadu_ps(sums + d), inverse), any));
  };
  int d = 0;
  for (; d + 16 <= dim; d += 16) {
    // packus works within 128-bit halves; the permutation puts the elements back in order.
    const __m256i packed =
        _mm256_permute4x64_epi64(_mm256_packus_epi32(bits(d), bits(d + 8)), 0b11011000);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + d), packed);
  }
  for (; d < dim; d += vector_rows) {
    alignas(32) std::uint32_t rest[vector_rows];
    _mm256_store_si256(reinterpret_cast<__m256i*>(rest), bits(d));
    for (int i = 0; i < std::min(vector_rows, dim - d); ++i)
      out[d + i] = static_cast<Bf16>(rest[i]);
  }
}

}  // namespace attest::amx
