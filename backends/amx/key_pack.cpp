#include "backends/amx/key_pack.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace attest::amx {
namespace {

/// Rows 2i and 2i + 1 of V interleaved element by element, as tdpbf16ps wants its second operand.
void interleave(const Bf16* even, const Bf16* odd, int dim, Bf16* out) {
  int d = 0;
  for (; d + 16 <= dim; d += 16) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(even + d));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd + d));
    const __m256i low = _mm256_unpacklo_epi16(a, b);
    const __m256i high = _mm256_unpackhi_epi16(a, b);
    auto* const to = reinterpret_cast<__m256i*>(out + std::ptrdiff_t{2} * d);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
  for (; d < dim; ++d) {
    out[std::ptrdiff_t{2} * d] = even[d];
    out[std::ptrdiff_t{2} * d + 1] = odd[d];
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

void prefetch_row(const Bf16* row, int dim) {
  for (int d = 0; d < dim; d += 32) {
    _mm_prefetch(reinterpret_cast<const char*>(row + d), _MM_HINT_T1);
  }
}

}  // namespace

TileMemory raw_tile_memory(std::size_t bytes) {
  const std::size_t whole = (bytes + 63) / 64 * 64;
  TileMemory memory(static_cast<std::byte*>(std::aligned_alloc(64, whole)), std::free);
  if (!memory) throw std::bad_alloc();
  return memory;
}

TileMemory tile_memory(std::size_t bytes) {
  TileMemory memory = raw_tile_memory(bytes);
  std::memset(memory.get(), 0, bytes);
  return memory;
}

void KeyBlock::prefetch(const BlockShape& shape) const {
  for (int j = first; j < last; ++j) {
    prefetch_row(k[j], shape.head_dim);
    prefetch_row(v[j], shape.v_head_dim);
  }
}

std::size_t KeyPack::bytes_of(const BlockShape& shape) {
  const auto k_elements = static_cast<std::size_t>(padded(shape.head_dim));
  const auto v_elements = static_cast<std::size_t>(padded(shape.v_head_dim));
  return (k_elements + v_elements) * keys_per_block * sizeof(Bf16);
}

KeyPack::KeyPack(const BlockShape& shape) : KeyPack(shape, tile_memory(bytes_of(shape))) {}

KeyPack::KeyPack(const BlockShape& shape, TileMemory memory) : KeyPack(shape, memory.get()) {
  memory_ = std::move(memory);
}

KeyPack::KeyPack(const BlockShape& shape, std::byte* memory)
    : shape_(shape),
      memory_(nullptr, std::free),
      k_(reinterpret_cast<Bf16*>(memory)),
      v_(k_ + static_cast<std::ptrdiff_t>(padded(shape.head_dim)) * keys_per_block) {}

void KeyPack::pack(const KeyBlock& keys, KeyRows rows) {
  keys_ = keys.last;
  pack_k(keys, rows);
  pack_v(keys);
}

void KeyPack::prefetch() const {
  prefetch_row(k_, padded(shape_.head_dim) * keys_per_block);
  prefetch_row(v_, padded(shape_.v_head_dim) * keys_per_block);
}

void KeyPack::pack_k(const KeyBlock& keys, KeyRows rows) {
  const int k_padded = padded(shape_.head_dim);
  const auto row_bytes = static_cast<std::size_t>(shape_.head_dim) * sizeof(Bf16);
  const auto padded_bytes = static_cast<std::size_t>(k_padded) * sizeof(Bf16);
  for (int tile = 0; tile < key_tiles(); ++tile) {
    const int first = tile * 16;
    const bool whole = rows == KeyRows::in_place && first >= keys.first &&
                       first + 16 <= keys.last && shape_.head_dim % 32 == 0;
    if (whole && equally_spaced(keys.k + first, k_stride_[tile])) {
      k_tile_[tile] = keys.k[first];
      continue;
    }
    k_tile_[tile] = k_ + static_cast<std::ptrdiff_t>(first) * k_padded;
    k_stride_[tile] = static_cast<std::ptrdiff_t>(k_padded) * 2;
    for (int j = first; j < first + 16; ++j) {
      // Keys that are not there are zeros: their probability is 0 and 0 * 0 adds nothing.
      Bf16* const to = k_ + static_cast<std::ptrdiff_t>(j) * k_padded;
      const bool there = j >= keys.first && j < keys.last;
      const std::size_t filled = there ? row_bytes : 0;
      if (there) std::memcpy(to, keys.k[j], row_bytes);
      std::memset(reinterpret_cast<std::byte*>(to) + filled, 0, padded_bytes - filled);
    }
  }
}

void KeyPack::pack_v(const KeyBlock& keys) {
  const std::ptrdiff_t pair_elements = static_cast<std::ptrdiff_t>(padded(shape_.v_head_dim)) * 2;
  const std::ptrdiff_t v_elements = static_cast<std::ptrdiff_t>(shape_.v_head_dim) * 2;
  const auto there = [&](int j) { return j >= keys.first && j < keys.last; };
  for (int j = 0; j < key_steps() * 32; j += 2) {
    Bf16* const to = v_ + j / 2 * pair_elements;
    if (there(j) && there(j + 1)) {
      interleave(keys.v[j], keys.v[j + 1], shape_.v_head_dim, to);
      std::fill(to + v_elements, to + pair_elements, Bf16{0});
      continue;
    }
    if (shape_.defect != Defect::scratch_of_the_last_item) {
      std::memset(to, 0, static_cast<std::size_t>(pair_elements) * sizeof(Bf16));
    }
    if (shape_.defect == Defect::single_v_row_dropped) continue;
    for (int half = 0; half < 2; ++half) {
      if (!there(j + half)) continue;
      for (int d = 0; d < shape_.v_head_dim; ++d)
        to[std::ptrdiff_t{2} * d + half] = keys.v[j + half][d];
    }
  }
}

}  // namespace attest::amx
