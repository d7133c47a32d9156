#include "backends/amx/row_block.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/amx/emulation/tile_file.hpp"
#include "backends/amx/tile.hpp"
#include "backends/amx/vector_math.hpp"

// The tile steps; the softmax between them is row_softmax.cpp.

namespace attest::amx {

RowBlock::RowBlock(const BlockShape& shape)
    : shape_(shape),
      k_padded_(padded(shape.head_dim)),
      v_padded_(padded(shape.v_head_dim)),
      memory_(nullptr, std::free) {
  std::size_t bytes = 0;
  const auto place = [&bytes](std::size_t count, std::size_t size) {
    const std::size_t at = bytes;
    bytes += (count * size + 63) / 64 * 64;
    return at;
  };
  const std::size_t at_q = place(static_cast<std::size_t>(k_padded_) * rows_per_block, 2);
  const std::size_t at_s = place(std::size_t{keys_per_block} * rows_per_block, 4);
  const std::size_t at_p = place(std::size_t{keys_per_block} * rows_per_block, 2);
  const std::size_t at_sums = place(static_cast<std::size_t>(v_padded_) * rows_per_block, 4);
  const std::size_t at_rows = place(std::size_t{3} * rows_per_block, 4);
  memory_ = tile_memory(bytes);
  q_ = reinterpret_cast<Bf16*>(memory_.get() + at_q);
  s_ = reinterpret_cast<float*>(memory_.get() + at_s);
  p_ = reinterpret_cast<Bf16*>(memory_.get() + at_p);
  sums_ = reinterpret_cast<float*>(memory_.get() + at_sums);
  maximum_ = reinterpret_cast<float*>(memory_.get() + at_rows);
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

/// Q as tdpbf16ps wants its second operand: pairs of dims, the rows side by side. Eight rows and
/// eight pairs at a time; rows that are not there are zeros.
void RowBlock::pack_queries(const Bf16* const* q) {
  constexpr int edge = 8;
  for (int row = 0; row < rows_per_block; row += edge) {
    const auto write = [&](__m256i(&pairs)[edge], int d) {
      transpose8(pairs);
      for (int i = 0; i < edge; ++i) {
        Bf16* const to = q_ + (static_cast<std::ptrdiff_t>(d / 2 + i) * rows_per_block + row) * 2;
        _mm256_store_si256(reinterpret_cast<__m256i*>(to), pairs[i]);
      }
    };
    int d = 0;
    for (; d + 2 * edge <= shape_.head_dim; d += 2 * edge) {
      __m256i pairs[edge];
      for (int r = 0; r < edge; ++r) {
        pairs[r] = row + r < rows_
                       ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q[row + r] + d))
                       : _mm256_setzero_si256();
      }
      write(pairs, d);
    }
    for (; d < k_padded_; d += 2 * edge) {
      __m256i pairs[edge];
      for (int r = 0; r < edge; ++r) {
        alignas(32) Bf16 rest[2 * edge] = {};
        const int left = std::clamp(shape_.head_dim - d, 0, 2 * edge);
        if (row + r < rows_) std::copy_n(q[row + r] + d, left, rest);
        pairs[r] = _mm256_load_si256(reinterpret_cast<const __m256i*>(rest));
      }
      write(pairs, d);
    }
  }
}

void RowBlock::begin(int rows, const Bf16* const* q) {
  rows_ = rows;
  pack_queries(q);
  std::fill_n(maximum_, rows_per_block, -std::numeric_limits<float>::infinity());
  std::fill_n(denominator_, rows_per_block, 0.0F);
  std::memset(sums_, 0, static_cast<std::size_t>(v_padded_) * rows_per_block * sizeof(float));
}

/// S^T of one or two 16-key tiles against one or two 16-row tiles: accumulators 0..3, K in 4 and 5,
/// Q in 6 and 7.
template <int row_tiles>
void RowBlock::score_tiles(const KeyPack& keys, int tile) {
  constexpr std::ptrdiff_t score_stride = rows_per_block * sizeof(float);
  constexpr std::ptrdiff_t q_stride = std::ptrdiff_t{rows_per_block} * 2 * sizeof(Bf16);
  const bool two = tile + 1 < keys.key_tiles();
  const Bf16* const upper = keys.k_tile(tile);
  const Bf16* const lower = two ? keys.k_tile(tile + 1) : upper;
  const std::ptrdiff_t upper_stride = keys.k_stride(tile);
  const std::ptrdiff_t lower_stride = two ? keys.k_stride(tile + 1) : upper_stride;
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  const bool whole_steps = shape_.defect == Defect::head_dim_tail_dropped;
  const int dims = whole_steps ? shape_.head_dim / 32 * 32 : k_padded_;
  for (int d = 0; d < dims; d += 32) {
    const Bf16* const q = q_ + static_cast<std::ptrdiff_t>(d) * rows_per_block;
    tile_load<4>(upper + d, upper_stride);
    tile_load<6>(q, q_stride);
    tile_dot_bf16<0, 4, 6>();
    if constexpr (row_tiles == 2) {
      tile_load<7>(q + 32, q_stride);
      tile_dot_bf16<1, 4, 7>();
    }
    if (!two) continue;
    tile_load<5>(lower + d, lower_stride);
    tile_dot_bf16<2, 5, 6>();
    if constexpr (row_tiles == 2) tile_dot_bf16<3, 5, 7>();
  }
  float* const s = s_ + static_cast<std::ptrdiff_t>(tile) * 16 * rows_per_block;
  tile_store<0>(s, score_stride);
  if constexpr (row_tiles == 2) tile_store<1>(s + 16, score_stride);
  if (!two) return;
  tile_store<2>(s + std::ptrdiff_t{16} * rows_per_block, score_stride);
  if constexpr (row_tiles == 2)
    tile_store<3>(s + std::ptrdiff_t{16} * rows_per_block + 16, score_stride);
}

void RowBlock::score(const KeyPack& keys, int part) {
  if (rows_ > 16) {
    score_tiles<2>(keys, 2 * part);
  } else {
    score_tiles<1>(keys, 2 * part);
  }
}

/// O += P V, 32 values of one or two 16-row tiles: accumulators 0..3, P in 4 and 5, V in 6 and 7.
template <int row_tiles>
void RowBlock::value_tiles(const KeyPack& keys, int d) {
  const std::ptrdiff_t sum_stride = static_cast<std::ptrdiff_t>(v_padded_) * 4;
  const std::ptrdiff_t v_stride = static_cast<std::ptrdiff_t>(v_padded_) * 4;
  const bool narrow = shape_.defect == Defect::probabilities_read_at_the_padded_width;
  const std::ptrdiff_t p_row = narrow ? std::ptrdiff_t{32} * keys.key_steps() : keys_per_block;
  const std::ptrdiff_t p_stride = p_row * static_cast<std::ptrdiff_t>(sizeof(Bf16));
  float* const upper = sums_ + d;
  float* const lower = sums_ + static_cast<std::ptrdiff_t>(16) * v_padded_ + d;
  tile_load<0>(upper, sum_stride);
  tile_load<1>(upper + 16, sum_stride);
  if constexpr (row_tiles == 2) {
    tile_load<2>(lower, sum_stride);
    tile_load<3>(lower + 16, sum_stride);
  }
  for (int step = 0; step < keys.key_steps(); ++step) {
    const Bf16* const v = keys.v() + (static_cast<std::ptrdiff_t>(step) * 16 * v_padded_ + d) * 2;
    tile_load<6>(v, v_stride);
    tile_load<7>(v + 32, v_stride);
    tile_load<4>(p_ + std::ptrdiff_t{32} * step, p_stride);
    tile_dot_bf16<0, 4, 6>();
    tile_dot_bf16<1, 4, 7>();
    if constexpr (row_tiles == 2) {
      tile_load<5>(p_ + 16 * p_row + std::ptrdiff_t{32} * step, p_stride);
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

void RowBlock::value(const KeyPack& keys, int part) {
  if (rows_ > 16) {
    value_tiles<2>(keys, 32 * part);
  } else {
    value_tiles<1>(keys, 32 * part);
  }
}

namespace {

/// The tile steps that need no result of the softmax at hand: the values of the row block before,
/// then the scores of the one after.
class TileQueue {
 public:
  TileQueue(const KeyPack& keys, RowBlock* before, RowBlock* after)
      : keys_(keys),
        before_(before),
        after_(after),
        values_(before != nullptr ? before->value_parts() : 0),
        all_(values_ + (after != nullptr ? after->score_parts(keys) : 0)) {}

  /// Issues steps until `share` of `of` parts of them have been.
  void advance(int share, int of) {
    for (; next_ < all_ * share / of; ++next_) {
      if (next_ < values_) {
        before_->value(keys_, next_);
      } else {
        after_->score(keys_, next_ - values_);
      }
    }
  }

 private:
  const KeyPack& keys_;
  RowBlock* before_;
  RowBlock* after_;
  int values_, all_;
  int next_ = 0;
};

}  // namespace

void attend(const KeyPack& keys, std::span<const Looking> rows) {
  if (rows.empty()) return;
  RowBlock& first = *rows.front().block;
  for (int part = 0; part < first.score_parts(keys); ++part) first.score(keys, part);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowBlock& block = *rows[i].block;
    TileQueue tiles(keys, i > 0 ? rows[i - 1].block : nullptr,
                    i + 1 < rows.size() ? rows[i + 1].block : nullptr);
    for (int lane = 0; lane < block.lanes(); ++lane) {
      tiles.advance(lane + 1, block.lanes());
      block.softmax(keys, *rows[i].visible, lane);
    }
    block.finish_softmax();
  }
  RowBlock& last = *rows.back().block;
  for (int part = 0; part < last.value_parts(); ++part) last.value(keys, part);
}

}  // namespace attest::amx
