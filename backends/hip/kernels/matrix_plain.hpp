#pragma once

#include "backends/hip/kernels/fragment.hpp"
#include "backends/hip/kernels/unrolled.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {

/// scores = q k^T for 16 rows of q and `tiles` tiles of keys, without matrix units: each lane reads
/// its rows and columns from shared memory, two tiles at a time.
template <class F, class T, int tiles>
__device__ inline void plain_scores(float (&scores)[tiles][F::elements], const T* q, int q_pitch,
                                    const T* k, int k_pitch, int dim) {
  constexpr int at_once = tiles % 2 == 0 ? 2 : 1;
  const int lane = lane_of<F>();
  const T* row[F::rows_held];
  unrolled<F::rows_held>([&](auto r) { row[r] = q + F::row(lane, r) * q_pitch; });
  unrolled<tiles / at_once>([&](auto step) {
    const T* column[at_once][F::columns_held];
    float sum[at_once][F::elements] = {};
    unrolled<at_once>([&](auto t) {
      unrolled<F::columns_held>(
          [&](auto c) { column[t][c] = k + F::column(lane, at_once * step + t, c) * k_pitch; });
    });
    for (int d = 0; d < dim; ++d) {
      float a[F::rows_held];
      unrolled<F::rows_held>([&](auto r) { a[r] = to_float(row[r][d]); });
      unrolled<at_once>([&](auto t) {
        unrolled<F::columns_held>([&](auto c) {
          const float b = to_float(column[t][c][d]);
          unrolled<F::rows_held>([&](auto r) { sum[t][r * F::columns_held + c] += a[r] * b; });
        });
      });
    }
    unrolled<at_once>([&](auto t) {
      unrolled<F::elements>([&](auto i) { scores[at_once * step + t][i] = sum[t][i]; });
    });
  });
}

/// Writes a group's probabilities where its other lanes can read them.
template <class F, int tiles>
__device__ inline void publish_weights(const float (&p)[tiles][F::elements], float* weights,
                                       int pitch) {
  const int lane = lane_of<F>();
  unrolled<tiles>([&](auto tile) {
    unrolled<F::elements>([&](auto i) {
      const int row = F::row(lane, i / F::columns_held);
      weights[row * pitch + F::column(lane, tile, i % F::columns_held)] = p[tile][i];
    });
  });
}

/// out += p v for 16 rows of p, `keys` keys and `tiles` tiles of v's columns, without matrix units.
template <class F, class T, int tiles>
__device__ inline void plain_values(float (&out)[tiles][F::elements], const float* weights,
                                    int weights_pitch, const T* v, int v_pitch, int keys) {
  const int lane = lane_of<F>();
  const float* row[F::rows_held];
  unrolled<F::rows_held>([&](auto r) { row[r] = weights + F::row(lane, r) * weights_pitch; });
  for (int key = 0; key < keys; ++key) {
    float a[F::rows_held];
    unrolled<F::rows_held>([&](auto r) { a[r] = row[r][key]; });
    const T* const values = v + key * v_pitch;
    unrolled<tiles>([&](auto tile) {
      unrolled<F::columns_held>([&](auto c) {
        const float b = to_float(values[F::column(lane, tile, c)]);
        unrolled<F::rows_held>([&](auto r) { out[tile][r * F::columns_held + c] += a[r] * b; });
      });
    });
  }
}

}  // namespace attest::hip
