#pragma once

// The two products on the tensor cores of CUDA GPUs from sm_80: ldmatrix and mma.m16n8k16 (PTX
// ISA). Only device code for CUDA sees this.

#include "backends/hip/kernels/async_copy.hpp"
#include "backends/hip/kernels/fragment.hpp"
#include "backends/hip/kernels/matrix_plain.hpp"
#include "backends/hip/runtime/kernel.hpp"

#if defined(__CUDA_ARCH__)

namespace attest::hip {

/// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1, Bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1, Fp16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats rounded to nearest even, the first in the low half.
__device__ __forceinline__ std::uint32_t packed(float low, float high, Bf16) {
  std::uint32_t both = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
__device__ __forceinline__ std::uint32_t packed(float low, float high, Fp16) {
  std::uint32_t both = 0;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

/// scores = q k^T for 16 rows and 8 `tiles` keys; `padded_dim` elements, zeros behind the real
/// ones.
template <class T, int padded_dim, int tiles>
__device__ __forceinline__ void mma_scores(float (&scores)[tiles][4], const T* q, int q_pitch,
                                           const T* k, int k_pitch) {
  const int lane = lane_of<MmaFragment>();
  const T* const q_row = q + lane % 16 * q_pitch + lane / 16 * 8;
  const T* const k_row = k + (lane % 8 + lane / 16 * 8) * k_pitch + lane / 8 % 2 * 8;
  unrolled<tiles>([&](auto t) { unrolled<4>([&](auto i) { scores[t][i] = 0; }); });
  unrolled<padded_dim / 16>([&](auto step) {
    std::uint32_t a[4];
    load_matrices(a, q_row + 16 * step);
    unrolled<tiles / 2>([&](auto pair) {
      std::uint32_t b[4];
      load_matrices(b, k_row + 16 * pair * k_pitch + 16 * step);
      multiply_add(scores[2 * pair], a, b[0], b[1], T{});
      multiply_add(scores[2 * pair + 1], a, b[2], b[3], T{});
    });
  });
}

/// out += p v for 16 rows, 8 `keys8` keys and 8 `tiles` columns of v; p is rounded to T.
template <class T, int keys8, int tiles>
__device__ __forceinline__ void mma_values(float (&out)[tiles][4], const float (&p)[keys8][4],
                                           const T* v, int v_pitch) {
  const int lane = lane_of<MmaFragment>();
  const T* const v_row = v + lane % 16 * v_pitch + lane / 16 * 8;
  unrolled<keys8 / 2>([&](auto step) {
    const auto& left = p[2 * step];
    const auto& right = p[2 * step + 1];
    const std::uint32_t a[4] = {packed(left[0], left[1], T{}), packed(left[2], left[3], T{}),
                                packed(right[0], right[1], T{}), packed(right[2], right[3], T{})};
    unrolled<tiles / 2>([&](auto pair) {
      std::uint32_t b[4];
      load_matrices_transposed(b, v_row + 16 * step * v_pitch + 16 * pair);
      multiply_add(out[2 * pair], a, b[0], b[1], T{});
      multiply_add(out[2 * pair + 1], a, b[2], b[3], T{});
    });
  });
}

}  // namespace attest::hip

#endif
