#pragma once

#include <cstdint>

#include "backends/hip/kernels/async_copy.hpp"
#include "backends/hip/kernels/paged_args.hpp"
#include "backends/hip/kernels/unrolled.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

template <class T>
inline constexpr Format format_of = Format::f32;
template <>
inline constexpr Format format_of<Fp16> = Format::f16;
template <>
inline constexpr Format format_of<Bf16> = Format::bf16;

__device__ inline int bytes_of(Format format) {
  return format == Format::f32 ? 4 : format == Format::f16 || format == Format::bf16 ? 2 : 1;
}

template <class T>
__device__ __forceinline__ T element_of(float value) {
  T element;
  store(element, value);
  return element;
}

/// Element `i` as T: its bits where the memory holds T, exact where it holds one of the fp8
/// formats.
template <class T>
__device__ __forceinline__ T load_as(const void* data, Format format, std::int64_t i) {
  if (format == Format::e4m3fn) return element_of<T>(to_float(static_cast<const E4m3fn*>(data)[i]));
  if (format == Format::e4m3fnuz) {
    return element_of<T>(to_float(static_cast<const E4m3fnuz*>(data)[i]));
  }
  return static_cast<const T*>(data)[i];
}

/// Eight consecutive fp8 elements as T in shared memory. \pre `from` aligned to 8 bytes.
template <class T, class Small>
__device__ __forceinline__ void widen8(T* to, const void* from) {
  const Vector8 packed = load_vector<Vector8>(from);
  T wide[8];
  unrolled<8>([&](auto i) {
    const auto bits = static_cast<std::uint8_t>(packed.word[i / 4] >> (8 * (i % 4)));
    wide[i] = element_of<T>(to_float(Small{bits}));
  });
  unrolled<static_cast<int>(sizeof wide) / 16>([&](auto i) {
    Vector16 part;
    memcpy(&part, reinterpret_cast<const unsigned char*>(wide) + 16 * i, 16);
    store_vector(reinterpret_cast<unsigned char*>(to) + 16 * i, part);
  });
}

/// Eight elements from index `at` of a pool to shared memory.
template <class T>
__device__ __forceinline__ void copy8(T* to, const void* data, Format format, std::int64_t at) {
  if (format == Format::e4m3fn) {
    widen8<T, E4m3fn>(to, static_cast<const unsigned char*>(data) + at);
  } else if (format == Format::e4m3fnuz) {
    widen8<T, E4m3fnuz>(to, static_cast<const unsigned char*>(data) + at);
  } else {
    const auto* from = static_cast<const T*>(data) + at;
    unrolled<static_cast<int>(sizeof(T)) / 2>([&](auto i) {
      constexpr int each = 16 / static_cast<int>(sizeof(T));
      copy16_async(to + i * each, from + i * each);
    });
  }
}

/// Where a tile's rows come from: offsets[key] is the element index of key's row, read only where
/// begin <= key < end.
struct TileSource {
  const void* data = nullptr;
  Format format = Format::bf16;
  const std::int64_t* offsets = nullptr;
  int begin = 0, end = 0;
  int dim = 0;
  bool vectors = false;
};

/// Starts filling `keys` rows of a tile: elements [0, dim) of each key in range, zeros for the
/// others, so that a probability of 0 meets no NaN. All threads of the block take part.
template <class T, int padded_dim, int pitch, int keys, int threads>
__device__ __forceinline__ void load_tile(T* tile, const TileSource& source) {
  const auto thread = static_cast<int>(threadIdx.x);
  if (source.vectors) {
    constexpr int chunks = padded_dim / 8;
    unrolled<(keys * chunks + threads - 1) / threads>([&](auto i) {
      const int c = thread + i * threads;
      const int key = c / chunks;
      const int d = c % chunks * 8;
      if (key >= keys || d >= source.dim) return;
      T* const to = tile + key * pitch + d;
      if (key >= source.begin && key < source.end) {
        copy8(to, source.data, source.format, source.offsets[key] + d);
      } else {
        unrolled<8>([&](auto e) { to[e] = element_of<T>(0); });
      }
    });
    return;
  }
  for (int e = thread; e < keys * padded_dim; e += threads) {
    const int key = e / padded_dim;
    const int d = e % padded_dim;
    if (d >= source.dim) continue;
    const bool in_range = key >= source.begin && key < source.end;
    tile[key * pitch + d] = in_range
                                ? load_as<T>(source.data, source.format, source.offsets[key] + d)
                                : element_of<T>(0);
  }
}

/// Zeros in columns [dim, padded_dim) of `rows` rows, which load_tile leaves alone.
template <class T, int padded_dim, int pitch, int threads>
__device__ inline void clear_padding(T* tile, int rows, int dim) {
  if (dim >= padded_dim) return;
  for (int e = static_cast<int>(threadIdx.x); e < rows * padded_dim; e += threads) {
    const int d = e % padded_dim;
    if (d >= dim) tile[e / padded_dim * pitch + d] = element_of<T>(0);
  }
}

}  // namespace attest::hip
