#pragma once

#include <cstdint>
#include <cstring>

#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip {

struct alignas(16) Vector16 {
  std::uint32_t word[4];
};
struct alignas(8) Vector8 {
  std::uint32_t word[2];
};

/// One load or store instruction. \pre aligned like V.
template <class V>
__device__ __forceinline__ V load_vector(const void* from) {
  V value;
  memcpy(&value, __builtin_assume_aligned(from, alignof(V)), sizeof value);
  return value;
}
template <class V>
__device__ __forceinline__ void store_vector(void* to, const V& value) {
  memcpy(__builtin_assume_aligned(to, alignof(V)), &value, sizeof value);
}

#if defined(__CUDA_ARCH__)
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
#endif

/// Copies 16 bytes from global to shared memory, past the registers where the hardware can. Done
/// and visible to this thread after wait_for_copies(). \pre both aligned to 16 bytes.
__device__ __forceinline__ void copy16_async(void* shared, const void* global) {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(global))
               : "memory");
#else
  store_vector(shared, load_vector<Vector16>(global));
#endif
}

__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_all;\n" ::: "memory");
#endif
}

}  // namespace attest::hip
