#pragma once

#include <cmath>
#include <limits>

#include "backends/hip/kernels/block_work.hpp"
#include "backends/hip/kernels/unrolled.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

inline constexpr float log2_of_e = 1.44269504F;
inline constexpr float ln_2 = 0.693147181F;
inline constexpr float nothing_seen = -std::numeric_limits<float>::infinity();

/// 2^x in one instruction where there is one; results below 2^-126 are 0.
__device__ __forceinline__ float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  float result = 0;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2_of(x);
#endif
}

/// 2^(x - maximum), where a maximum of -infinity stands for "no key yet": 0, never NaN.
__device__ __forceinline__ float weight_of(float x, float maximum) {
  return power_of_two(x - (maximum == nothing_seen ? 0.0F : maximum));
}

/// cap tanh(x / cap) through one exponential, which may overflow: 1 - 2 / infinity is 1.
__device__ __forceinline__ float capped(float x, float cap) {
  const float e = exp2_of(fabsf(x) * (2.0F * log2_of_e / cap));
  const float tanh = 1.0F - 2.0F / (e + 1.0F);
  return x < 0 ? -cap * tanh : cap * tanh;
}

/// From a product of q and k to a score in base 2.
struct ScoreScale {
  float scale = 1;  ///< of the natural score
  float softcap = 0;

  template <PlantedFault fault>
  __device__ __forceinline__ float base2(float product) const {
    if (softcap <= 0) return product * (scale * log2_of_e);
    if constexpr (fault == PlantedFault::softcap_overflows) {
      const float u = exp2_of(product * scale * log2_of_e / softcap);
      return softcap * log2_of_e * ((u - 1.0F / u) / (u + 1.0F / u));
    }
    return capped(product * scale, softcap) * log2_of_e;
  }
};

/// Maximum and sum of the rows a lane holds, over its group's keys so far. The sum is the lane's
/// own part; lanes that share a row add theirs at the end.
template <class F>
struct RunningSoftmax {
  float maximum[F::rows_held];
  float sum[F::rows_held];
  KeyRange visible[F::rows_held];

  __device__ __forceinline__ void clear() {
    unrolled<F::rows_held>([&](auto r) {
      maximum[r] = nothing_seen;
      sum[r] = 0;
    });
  }

  /// Turns products into probabilities relative to the new maximum, unrounded. `rescale` receives
  /// what the rows' earlier sums and outputs must be multiplied by.
  template <PlantedFault fault, int tiles>
  __device__ __forceinline__ void step(float (&scores)[tiles][F::elements], int first_key, int lane,
                                       const ScoreScale& scale, float (&rescale)[F::rows_held]) {
    float top[F::rows_held];
    unrolled<F::rows_held>([&](auto r) { top[r] = nothing_seen; });
    constexpr int keys = tiles * F::tile_columns;
    bool whole = true;  // no key of the tile is hidden from a row of this lane
    unrolled<F::rows_held>([&](auto r) {
      const bool begins = fault == PlantedFault::window_edge_seen_as_whole ||  // forgotten
                          first_key >= visible[r].begin;
      whole = whole && begins && first_key + keys <= visible[r].end;
    });
    unrolled<tiles>([&](auto tile) {
      unrolled<F::elements>([&](auto i) {
        constexpr int r = i / F::columns_held;
        const int key = first_key + F::column(lane, tile, i % F::columns_held);
        const bool seen = whole || (key >= visible[r].begin && key < visible[r].end);
        scores[tile][i] = seen ? scale.template base2<fault>(scores[tile][i]) : nothing_seen;
        if constexpr (fault == PlantedFault::cap_after_mask) {
          if (!seen && scale.softcap > 0) scores[tile][i] = -scale.softcap * log2_of_e;
        }
        top[r] = fmaxf(top[r], scores[tile][i]);
      });
    });
    unrolled<F::rows_held>([&](auto r) {
      unrolled<F::column_bits>(
          [&](auto bit) { top[r] = fmaxf(top[r], __shfl_xor(top[r], 1 << bit)); });
      if constexpr (fault == PlantedFault::masked_tile_floors_maximum) {
        if (top[r] == nothing_seen && maximum[r] == nothing_seen) top[r] = 0;
      }
      float highest = fmaxf(maximum[r], top[r]);
      if constexpr (fault == PlantedFault::maximum_of_one_tile) {
        if (top[r] != nothing_seen) highest = top[r];
      }
      rescale[r] = weight_of(maximum[r], highest);
      maximum[r] = highest;
      sum[r] *= rescale[r];
      if (fault == PlantedFault::small_rescale_left_out && rescale[r] > 0.5F) rescale[r] = 1;
    });
    float base[F::rows_held];
    unrolled<F::rows_held>([&](auto r) { base[r] = maximum[r] == nothing_seen ? 0 : maximum[r]; });
    unrolled<tiles>([&](auto tile) {
      unrolled<F::elements>([&](auto i) {
        constexpr int r = i / F::columns_held;
        scores[tile][i] = power_of_two(scores[tile][i] - base[r]);
        sum[r] += scores[tile][i];
      });
    });
  }

  /// Adds up the lanes of each row, in one order whatever the wave's size.
  __device__ __forceinline__ void add_lanes() {
    unrolled<F::rows_held>([&](auto r) {
      unrolled<F::column_bits>([&](auto bit) { sum[r] += __shfl_xor(sum[r], 1 << bit); });
    });
  }
};

/// What is known of one row's softmax.
struct RowStats {
  float maximum = nothing_seen;  ///< base 2
  float sum = 0;

  /// Adds a key of natural logit `sink` and value 0.
  __device__ void add_sink(float sink) {
    const float logit = sink * log2_of_e;
    const float highest = fmaxf(maximum, logit);
    sum = sum * weight_of(maximum, highest) + weight_of(logit, highest);
    scale *= weight_of(maximum, highest);
    maximum = highest;
  }
  /// Of an output that was summed relative to the first maximum.
  __device__ float normaliser() const { return sum > 0 || sum != sum ? scale / sum : 0.0F; }
  __device__ float lse() const { return sum == 0 ? nothing_seen : (maximum + log2f(sum)) * ln_2; }

  float scale = 1;
};

}  // namespace attest::hip
