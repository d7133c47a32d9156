#pragma once

// The part of HIP that kernel.hpp promises, on clang's builtins alone: enough to compile every
// kernel for an AMD target where ROCm is not installed, and to look at the code (docs/hip.md).
// qualifiers.hpp includes this in place of <hip/hip_runtime.h>.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip::amdgcn {

// `threadIdx.x` reads a register. Properties, so that it is an unsigned for `auto` too.
struct ThreadIndex {
  __device__ static unsigned get_x() { return __builtin_amdgcn_workitem_id_x(); }
  __device__ static unsigned get_y() { return __builtin_amdgcn_workitem_id_y(); }
  __device__ static unsigned get_z() { return __builtin_amdgcn_workitem_id_z(); }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
};
struct BlockIndex {
  __device__ static unsigned get_x() { return __builtin_amdgcn_workgroup_id_x(); }
  __device__ static unsigned get_y() { return __builtin_amdgcn_workgroup_id_y(); }
  __device__ static unsigned get_z() { return __builtin_amdgcn_workgroup_id_z(); }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
};
struct BlockSize {
  __device__ static unsigned get_x() { return __builtin_amdgcn_workgroup_size_x(); }
  __device__ static unsigned get_y() { return __builtin_amdgcn_workgroup_size_y(); }
  __device__ static unsigned get_z() { return __builtin_amdgcn_workgroup_size_z(); }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
};
struct GridSize {
  __device__ static unsigned get_x() { return __builtin_amdgcn_grid_size_x() / BlockSize::get_x(); }
  __device__ static unsigned get_y() { return __builtin_amdgcn_grid_size_y() / BlockSize::get_y(); }
  __device__ static unsigned get_z() { return __builtin_amdgcn_grid_size_z() / BlockSize::get_z(); }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
};

__device__ inline int lane() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0U, __builtin_amdgcn_mbcnt_lo(~0U, 0U)));
}

template <class T>
__device__ T from_lane(T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "HIP shuffles 4 or 8 bytes");
  int words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof value);
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(source << 2, word);
  __builtin_memcpy(&value, words, sizeof value);
  return value;
}

}  // namespace attest::hip::amdgcn

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): HIP chose these names.
namespace {
__device__ constexpr attest::hip::amdgcn::ThreadIndex threadIdx{};
__device__ constexpr attest::hip::amdgcn::BlockIndex blockIdx{};
__device__ constexpr attest::hip::amdgcn::BlockSize blockDim{};
__device__ constexpr attest::hip::amdgcn::GridSize gridDim{};
}  // namespace

// Overloads of the host's declarations; the compiler picks by the caller.
__device__ inline float fabsf(float x) { return __builtin_fabsf(x); }
__device__ inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
__device__ inline float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
__device__ inline float fminf(float x, float y) { return __builtin_fminf(x, y); }
__device__ inline float log2f(float x) { return __builtin_log2f(x); }
__device__ inline float logf(float x) { return __builtin_logf(x); }
__device__ inline float sqrtf(float x) { return __builtin_sqrtf(x); }
__device__ inline void* memcpy(void* to, const void* from, std::size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}

__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

template <class T>
__device__ T __shfl(T value, int source, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = attest::hip::amdgcn::lane();
  return attest::hip::amdgcn::from_lane(value, (source & (width - 1)) + (self & ~(width - 1)));
}
template <class T>
__device__ T __shfl_xor(T value, int mask, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = attest::hip::amdgcn::lane();
  const int source = self ^ mask;
  return attest::hip::amdgcn::from_lane(value,
                                        source >= ((self + width) & ~(width - 1)) ? self : source);
}
template <class T>
__device__ T __shfl_down(T value, unsigned delta, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = attest::hip::amdgcn::lane();
  const int source = self + static_cast<int>(delta);
  return attest::hip::amdgcn::from_lane(
      value, (self & (width - 1)) + static_cast<int>(delta) >= width ? self : source);
}
template <class T>
__device__ T __shfl_up(T value, unsigned delta, int width = __builtin_amdgcn_wavefrontsize()) {
  const int self = attest::hip::amdgcn::lane();
  const int source = self - static_cast<int>(delta);
  return attest::hip::amdgcn::from_lane(value, source < (self & ~(width - 1)) ? self : source);
}
__device__ inline std::uint64_t __ballot(int predicate) {
#if defined(__AMDGCN_WAVEFRONT_SIZE) && __AMDGCN_WAVEFRONT_SIZE == 32
  return __builtin_amdgcn_ballot_w32(predicate != 0);
#else
  return __builtin_amdgcn_ballot_w64(predicate != 0);
#endif
}
__device__ inline int __any(int predicate) { return __ballot(predicate) != 0 ? 1 : 0; }
__device__ inline int __all(int predicate) { return __ballot(predicate == 0) == 0 ? 1 : 0; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
