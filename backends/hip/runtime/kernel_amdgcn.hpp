#pragma once

// The part of HIP that kernel.hpp promises, on clang's builtins alone: enough to compile every
// kernel for an AMD target where ROCm is not installed (scripts and docs/hip.md: compile-only).

#include <cstdint>
#include <cstring>

#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip::amdgcn {

// `threadIdx.x` reads a register: a static property, so that the three coordinates need no storage.
template <unsigned (*get_x)(), unsigned (*get_y)(), unsigned (*get_z)()>
struct Coordinates {
  template <unsigned (*get)()>
  struct Coordinate {
    __device__ operator unsigned() const { return get(); }
  };
  Coordinate<get_x> x;
  Coordinate<get_y> y;
  Coordinate<get_z> z;
};

__device__ inline unsigned thread_x() { return __builtin_amdgcn_workitem_id_x(); }
__device__ inline unsigned thread_y() { return __builtin_amdgcn_workitem_id_y(); }
__device__ inline unsigned thread_z() { return __builtin_amdgcn_workitem_id_z(); }
__device__ inline unsigned block_x() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ inline unsigned block_y() { return __builtin_amdgcn_workgroup_id_y(); }
__device__ inline unsigned block_z() { return __builtin_amdgcn_workgroup_id_z(); }
__device__ inline unsigned size_x() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ inline unsigned size_y() { return __builtin_amdgcn_workgroup_size_y(); }
__device__ inline unsigned size_z() { return __builtin_amdgcn_workgroup_size_z(); }
__device__ inline unsigned grid_x() { return __builtin_amdgcn_grid_size_x() / size_x(); }
__device__ inline unsigned grid_y() { return __builtin_amdgcn_grid_size_y() / size_y(); }
__device__ inline unsigned grid_z() { return __builtin_amdgcn_grid_size_z() / size_z(); }

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
using namespace attest::hip::amdgcn;  // NOLINT
__device__ constexpr Coordinates<thread_x, thread_y, thread_z> threadIdx{};
__device__ constexpr Coordinates<block_x, block_y, block_z> blockIdx{};
__device__ constexpr Coordinates<size_x, size_y, size_z> blockDim{};
__device__ constexpr Coordinates<grid_x, grid_y, grid_z> gridDim{};
}  // namespace

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
