#pragma once

#include "backends/hip/kernels/matrix_mma.hpp"
#include "backends/hip/kernels/matrix_plain.hpp"
#include "backends/hip/kernels/shape.hpp"

namespace attest::hip {

/// Whether the two products run on matrix units. Host and device code of one build agree on it: the
/// size of shared memory depends on it.
template <class T, class F>
inline constexpr bool on_matrix_units =
#if defined(__CUDACC__)
    sizeof(T) == 2 && F::lanes == MmaFragment::lanes;
#else
    false;
#endif

/// scores = q k^T for the group's 16 rows and its keys of the tile.
template <class T, class S>
__device__ __forceinline__ void scores_step(float (&scores)[S::score_tiles][S::Fragment::elements],
                                            const T* q, const T* k, int dim) {
  using L = SharedLayout<T, S>;
  using F = typename S::Fragment;
#if defined(__CUDA_ARCH__)
  if constexpr (on_matrix_units<T, F>) {
    mma_scores<T, S::head_dim>(scores, q, L::q_pitch, k, L::k_pitch);
    return;
  }
#endif
  plain_scores<F>(scores, q, L::q_pitch, k, L::k_pitch, dim);
}

/// out += p v for the group's 16 rows and its keys of the tile; p holds values of T already.
/// \param weights  memory of the group that the plain product passes p through.
template <class T, class S>
__device__ __forceinline__ void values_step(float (&out)[S::value_tiles][S::Fragment::elements],
                                            const float (&p)[S::score_tiles][S::Fragment::elements],
                                            const T* v, float* weights) {
  using L = SharedLayout<T, S>;
  using F = typename S::Fragment;
#if defined(__CUDA_ARCH__)
  if constexpr (on_matrix_units<T, F>) {
    mma_values<T>(out, p, v, L::v_pitch);
    return;
  }
#endif
  sync_wave();  // the last tile's weights are read
  publish_weights<F>(p, weights, L::weights_pitch);
  sync_wave();
  plain_values<F>(out, weights, L::weights_pitch, v, L::v_pitch, S::group_keys);
}

}  // namespace attest::hip
