#include "backends/amx/row_block.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "backends/amx/emulation/tile_file.hpp"
#include "backends/amx/tile.hpp"
#include "backends/amx/vector_math.hpp"

namespace attest::amx {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr int lanes = 8;

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

/// Rows 2i and 2i + 1 of V interleaved element by element, as tdpbf16ps wants its second operand.
void interleave(const Bf16* even, const Bf16* odd, int dim, Bf16* out) {
  int d = 0;
  for (; d + 16 <= dim; d += 16) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + d));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + d));
    const __m256i low = _mm256_unpacklo_epi16(a, b);
    const __m256i high = _mm256_unpackhi_epi16(a, b);
    auto* const to = reinterpret_cast<__m256i*>(out + 2 * d);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  for (; d < dim; ++d) {
    out[2 * d] = even[d];
    out[2 * d + 1] = odd[d];
  }
}

/// One stride through all 16 addresses, or nothing.
bool equally_spaced(const Bf16* const* rows, std::ptrdiff_t& stride_bytes) {
  const std::ptrdiff_t step = rows[1] - rows[0];
  for (int i = 2; i < 16; ++i) {
    if (rows[i] - rows[i - 1] != step) return false;
  }
  stride_bytes = step * static_cast<std::ptrdiff_t>(sizeof(Bf16));
  return true;
}

/// exp of one float, through the vector code: the same bits as everywhere else.
float exp1(float x) { return _mm256_cvtss_f32(exp8(_mm256_set1_ps(x))); }

}  // namespace

RowBlock::RowBlock(const BlockShape& shape)
    : shape_(shape),
      k_padded_(round_up(shape.head_dim, 32)),
      v_padded_(round_up(shape.v_head_dim, 32)),
      memory_(nullptr, std::free) {
  std::size_t bytes = 0;
  const auto place = [&bytes](std::size_t count, std::size_t size) {
    const std::size_t at = bytes;
    bytes += (count * size + 63) / 64 * 64;
    return at;
  };
  const auto kp = static_cast<std::size_t>(k_padded_);
  const auto vp = static_cast<std::size_t>(v_padded_);
  const std::size_t at_q = place(kp * rows_per_block, 2);
  const std::size_t at_k = place(kp * keys_per_block, 2);
  const std::size_t at_v = place(vp * keys_per_block, 2);
  const std::size_t at_s = place(keys_per_block * rows_per_block, 4);
  const std::size_t at_p = place(keys_per_block * rows_per_block, 2);
  const std::size_t at_o = place(vp * rows_per_block, 4);
  const std::size_t at_rows = place(3 * rows_per_block, 4);
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_.get(), 0, bytes);
  const auto bf16_at = [this](std::size_t at) {
    return reinterpret_cast<Bf16*>(memory_.get() + at);
  };
  const auto float_at = [this](std::size_t at) {
    return reinterpret_cast<float*>(memory_.get() + at);
  };
  q_ = bf16_at(at_q);
  k_ = bf16_at(at_k);
  v_ = bf16_at(at_v);
  s_ = float_at(at_s);
  p_ = bf16_at(at_p);
  sums_ = float_at(at_o);
  maximum_ = float_at(at_rows);
  denominator_ = maximum_ + rows_per_block;
  factor_ = denominator_ + rows_per_block;
}

void RowBlock::configure_tiles() {
  TileConfig config;
  config.palette = 1;
  config.rows.fill(16);
  config.colsb.fill(64);
  tile_loadconfig(&config);
}

void RowBlock::begin(int rows, const Bf16* const* q) {
  rows_ = rows;
  std::memset(q_, 0, static_cast<std::size_t>(k_padded_) * rows_per_block * sizeof(Bf16));
  for (int r = 0; r < rows; ++r) {
    for (int d = 0; d < shape_.head_dim; ++d) {
      q_[(d / 2 * rows_per_block + r) * 2 + d % 2] = q[r][d];
    }
  }
  std::fill_n(maximum_, rows_per_block, minus_infinity);
  std::fill_n(denominator_, rows_per_block, 0.0F);
  std::memset(sums_, 0, static_cast<std::size_t>(v_padded_) * rows_per_block * sizeof(float));
}

void RowBlock::attend(const KeyBlock& keys, const Visibility& visible) {
  gather(keys);
  scores(keys);
  if (!softmax(keys.count, visible)) return;
  accumulate(keys.count);
}

void RowBlock::gather(const KeyBlock& keys) {
  const auto row_bytes = static_cast<std::size_t>(shape_.head_dim) * sizeof(Bf16);
  for (int tile = 0; tile * 16 < keys.count; ++tile) {
    const int first = tile * 16;
    const bool whole = keys.count - first >= 16 && shape_.head_dim % 32 == 0;
    if (whole && equally_spaced(keys.k + first, key_tile_stride_[tile])) {
      key_tile_[tile] = keys.k[first];
      continue;
    }
    key_tile_[tile] = k_ + static_cast<std::ptrdiff_t>(first) * k_padded_;
    key_tile_stride_[tile] = static_cast<std::ptrdiff_t>(k_padded_) * 2;
    for (int j = first; j < first + 16; ++j) {
      // Keys past the end are zeros: their probability is 0 and 0 * 0 adds nothing. The padding of
      // head_dim is zero from the start.
      Bf16* const to = k_ + static_cast<std::ptrdiff_t>(j) * k_padded_;
      if (j < keys.count) {
        std::memcpy(to, keys.k[j], row_bytes);
      } else {
        std::memset(to, 0, row_bytes);
      }
    }
  }
  const std::ptrdiff_t pair_elements = static_cast<std::ptrdiff_t>(v_padded_) * 2;
  const int pairs = round_up(keys.count, 32) / 2;
  for (int pair = 0; pair < pairs; ++pair) {
    Bf16* const to = v_ + pair * pair_elements;
    const int j = 2 * pair;
    if (j + 1 < keys.count) {
      interleave(keys.v[j], keys.v[j + 1], shape_.v_head_dim, to);
      continue;
    }
    std::memset(to, 0, static_cast<std::size_t>(pair_elements) * sizeof(Bf16));
    if (j == keys.count) continue;
    for (int d = 0; j < keys.count && d < shape_.v_head_dim; ++d) to[2 * d] = keys.v[j][d];
  }
}

/// S^T of two 16-key tiles against one or two 16-row tiles: accumulators 0..3, K in 4 and 5, Q in
/// 6, 7.
template <int row_tiles>
void RowBlock::score_tiles(int key_tiles) {
  constexpr std::ptrdiff_t score_stride = rows_per_block * sizeof(float);
  constexpr std::ptrdiff_t q_stride = rows_per_block * 2 * sizeof(Bf16);
  for (int tile = 0; tile < key_tiles; tile += 2) {
    const bool two = tile + 1 < key_tiles;
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
    for (int d = 0; d < k_padded_; d += 32) {
      const Bf16* const q = q_ + static_cast<std::ptrdiff_t>(d) * rows_per_block;
      tile_load<4>(key_tile_[tile] + d, key_tile_stride_[tile]);
      tile_load<6>(q, q_stride);
      tile_dot_bf16<0, 4, 6>();
      if constexpr (row_tiles == 2) {
        tile_load<7>(q + 32, q_stride);
        tile_dot_bf16<1, 4, 7>();
      }
      if (!two) continue;
      tile_load<5>(key_tile_[tile + 1] + d, key_tile_stride_[tile + 1]);
      tile_dot_bf16<2, 5, 6>();
      if constexpr (row_tiles == 2) tile_dot_bf16<3, 5, 7>();
    }
    float* const s = s_ + static_cast<std::ptrdiff_t>(tile) * 16 * rows_per_block;
    tile_store<0>(s, score_stride);
    if constexpr (row_tiles == 2) tile_store<1>(s + 16, score_stride);
    if (!two) continue;
    tile_store<2>(s + 16 * rows_per_block, score_stride);
    if constexpr (row_tiles == 2) tile_store<3>(s + 16 * rows_per_block + 16, score_stride);
  }
}

void RowBlock::scores(const KeyBlock& keys) {
  const int key_tiles = (keys.count + 15) / 16;
  if (rows_ > 16) {
    score_tiles<2>(key_tiles);
  } else {
    score_tiles<1>(key_tiles);
  }
}

/// Scale, cap and mask eight rows' scores in place; their new maximum and the factor of the old
/// sums.
void RowBlock::score_lanes(int lane, int keys, const Visibility& visible, bool masked) {
  const __m256 scale = _mm256_set1_ps(shape_.scale);
  const __m256 cap = _mm256_set1_ps(shape_.softcap);
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(visible.first + lane));
  const __m256i last = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(visible.last + lane));
  const __m256 old = _mm256_load_ps(maximum_ + lane);
  __m256 top = old;
  for (int j = 0; j < keys; ++j) {
    float* const at = s_ + static_cast<std::ptrdiff_t>(j) * rows_per_block + lane;
    __m256 s = _mm256_mul_ps(_mm256_load_ps(at), scale);
    if (shape_.softcap > 0) s = _mm256_mul_ps(tanh8(_mm256_div_ps(s, cap)), cap);
    if (masked) {
      const __m256i key = _mm256_set1_epi32(j);
      __m256i hidden =
          _mm256_or_si256(_mm256_cmpgt_epi32(first, key),
                          _mm256_xor_si256(_mm256_cmpgt_epi32(last, key), _mm256_set1_epi32(-1)));
      if (visible.mask != nullptr) {
        const auto* const bytes = reinterpret_cast<const __m128i*>(
            visible.mask + static_cast<std::ptrdiff_t>(j) * rows_per_block + lane);
        const __m256i bits = _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes));
        hidden = _mm256_or_si256(hidden, _mm256_cmpeq_epi32(bits, _mm256_setzero_si256()));
      }
      s = _mm256_blendv_ps(s, _mm256_set1_ps(minus_infinity), _mm256_castsi256_ps(hidden));
    }
    _mm256_store_ps(at, s);
    top = _mm256_max_ps(top, s);
  }
  _mm256_store_ps(maximum_ + lane, top);
  // A row that saw nothing yet: exp(-inf - 0) = 0 below, and its factor is irrelevant.
  const __m256 none = _mm256_cmp_ps(top, _mm256_set1_ps(minus_infinity), _CMP_EQ_OQ);
  const __m256 base = _mm256_blendv_ps(top, _mm256_setzero_ps(), none);
  _mm256_store_ps(factor_ + lane, exp8(_mm256_sub_ps(old, base)));
}

/// exp, denominators, and P in bf16 with the rows' keys side by side.
void RowBlock::probability_lanes(int lane, int keys) {
  const __m256 top = _mm256_load_ps(maximum_ + lane);
  const __m256 none = _mm256_cmp_ps(top, _mm256_set1_ps(minus_infinity), _CMP_EQ_OQ);
  const __m256 base = _mm256_blendv_ps(top, _mm256_setzero_ps(), none);
  __m256 sum = _mm256_mul_ps(_mm256_load_ps(denominator_ + lane), _mm256_load_ps(factor_ + lane));
  const int padded = round_up(keys, 32);
  for (int j = 0; j < padded; j += 2 * lanes) {
    __m256 p[2][lanes];
    for (int half = 0; half < 2; ++half) {
      for (int k = 0; k < lanes; ++k) {
        const int key = j + half * lanes + k;
        if (key >= keys) {
          p[half][k] = _mm256_setzero_ps();
          continue;
        }
        const float* const at = s_ + static_cast<std::ptrdiff_t>(key) * rows_per_block + lane;
        p[half][k] = exp8(_mm256_sub_ps(_mm256_load_ps(at), base));
        sum = _mm256_add_ps(sum, p[half][k]);
      }
      transpose8(p[half]);
    }
    for (int r = 0; r < lanes; ++r) {
      // packus works within 128-bit halves; the permutation puts the keys back in order.
      const __m256i packed = _mm256_permute4x64_epi64(
          _mm256_packus_epi32(to_bf16(p[0][r]), to_bf16(p[1][r])), 0b11011000);
      Bf16* const to = p_ + static_cast<std::ptrdiff_t>(lane + r) * keys_per_block + j;
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), packed);
    }
  }
  _mm256_store_ps(denominator_ + lane, sum);
}

/// False when no row sees any key of the block.
bool RowBlock::softmax(int keys, const Visibility& visible) {
  bool masked = visible.mask != nullptr;
  bool any = false;
  for (int r = 0; r < rows_; ++r) {
    masked |= visible.first[r] > 0 || visible.last[r] < keys;
    any |= visible.first[r] < std::min(visible.last[r], keys);
  }
  if (!any) return false;
  const int used = rows_ > 16 ? rows_per_block : 16;
  for (int lane = 0; lane < used; lane += lanes) {
    score_lanes(lane, keys, visible, masked);
    probability_lanes(lane, keys);
  }
  rescale();
  return true;
}

void RowBlock::rescale() {
  for (int r = 0; r < rows_; ++r) {
    if (factor_[r] == 1.0F) continue;
    float* const row = sums_ + static_cast<std::ptrdiff_t>(r) * v_padded_;
    const __m256 factor = _mm256_set1_ps(factor_[r]);
    for (int d = 0; d < v_padded_; d += lanes) {
      _mm256_store_ps(row + d, _mm256_mul_ps(_mm256_load_ps(row + d), factor));
    }
  }
}

/// O += P V, 32 values of one or two 16-row tiles at a time: accumulators 0..3, P in 4 and 5, V in
/// 6, 7.
template <int row_tiles>
void RowBlock::value_tiles(int key_steps) {
  const std::ptrdiff_t sum_stride = static_cast<std::ptrdiff_t>(v_padded_) * 4;
  const std::ptrdiff_t v_stride = static_cast<std::ptrdiff_t>(v_padded_) * 4;
  constexpr std::ptrdiff_t p_stride = keys_per_block * sizeof(Bf16);
  for (int d = 0; d < v_padded_; d += 32) {
    float* const upper = sums_ + d;
    float* const lower = sums_ + static_cast<std::ptrdiff_t>(16) * v_padded_ + d;
    tile_load<0>(upper, sum_stride);
    tile_load<1>(upper + 16, sum_stride);
    if constexpr (row_tiles == 2) {
      tile_load<2>(lower, sum_stride);
      tile_load<3>(lower + 16, sum_stride);
    }
    for (int step = 0; step < key_steps; ++step) {
      const Bf16* const v = v_ + (static_cast<std::ptrdiff_t>(step) * 16 * v_padded_ + d) * 2;
      tile_load<6>(v, v_stride);
      tile_load<7>(v + 32, v_stride);
      tile_load<4>(p_ + step * 32, p_stride);
      tile_dot_bf16<0, 4, 6>();
      tile_dot_bf16<1, 4, 7>();
      if constexpr (row_tiles == 2) {
        tile_load<5>(p_ + 16 * keys_per_block + step * 32, p_stride);
        tile_dot_bf16<2, 5, 6>();
        tile_dot_bf16<3, 5, 7>();
      }
    }
    tile_store<0>(upper, sum_stride);
    tile_store<1>(upper + 16, sum_stride);
    if constexpr (row_tiles == 2) {
      tile_store<2>(lower, sum_stride);
      tile_store<3>(lower + 16, sum_stride);
    }
  }
}

void RowBlock::accumulate(int keys) {
  const int key_steps = round_up(keys, 32) / 32;
  if (rows_ > 16) {
    value_tiles<2>(key_steps);
  } else {
    value_tiles<1>(key_steps);
  }
}

void merge(float& to_maximum, float& to_denominator, float* to_sums, float from_maximum,
           float from_denominator, const float* from_sums, int dim) {
  if (from_denominator == 0) return;
  const float top = std::max(to_maximum, from_maximum);
  const float old_factor = to_denominator == 0 ? 0.0F : exp1(to_maximum - top);
  const float new_factor = exp1(from_maximum - top);
  for (int d = 0; d < dim; ++d) to_sums[d] = to_sums[d] * old_factor + from_sums[d] * new_factor;
  to_denominator = to_denominator * old_factor + from_denominator * new_factor;
  to_maximum = top;
}

void write_row(float maximum, float denominator, const float* sums, int dim, const float* sink,
               Bf16* out) {
  float factor = 1;
  if (sink != nullptr) {
    // The sink may dominate: both terms relative to the larger.
    const float top = denominator == 0 ? *sink : std::max(maximum, *sink);
    factor = denominator == 0 ? 0.0F : exp1(maximum - top);
    denominator = denominator * factor + exp1(*sink - top);
  }
  const float inverse = denominator == 0 ? 0.0F : factor / denominator;
  for (int d = 0; d < dim; ++d) {
    const __m256 value = _mm256_set1_ps(denominator == 0 ? 0.0F : sums[d] * inverse);
    out[d] = static_cast<Bf16>(_mm256_cvtsi256_si32(to_bf16(value)));
  }
}

}  // namespace attest::amx
