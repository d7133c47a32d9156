#pragma once

// What HIP does not give under the names of kernel.hpp. Only hipcc and clang -x hip read this.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/hip/runtime/device_error.hpp"
#include "backends/hip/runtime/launch_types.hpp"
#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip::inline on_rocm {

__device__ inline int wave_size() { return __builtin_amdgcn_wavefrontsize(); }

/// Lanes of a wave run in step, so only the compiler must be kept from moving memory accesses.
__device__ inline void sync_wave() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

__device__ inline float exp2_of(float x) { return __builtin_exp2f(x); }

template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __attribute__((aligned(16))) unsigned char attest_dynamic_shared[];
  return reinterpret_cast<T*>(attest_dynamic_shared);
}

#if defined(__CLANG_HIP_RUNTIME_WRAPPER_H__)
/// \throws DeviceError naming the kernel and HIP's error. Asynchronous, as HIP's launches are.
template <class Args>
void launch(Kernel<Args> kernel, Extent grid, Extent block, std::size_t shared_bytes, Stream stream,
            const std::type_identity_t<Args>& args) {
  const void* entry = reinterpret_cast<const void*>(kernel.entry);
  const auto require = [&](hipError_t error, const char* call) {
    if (error == hipSuccess) return;
    throw_launch_error(call, kernel.name, grid, block, shared_bytes, hipGetErrorName(error),
                       hipGetErrorString(error));
  };
  Args copy = args;
  void* pointers[] = {&copy};
  require(hipLaunchKernel(entry, dim3(grid.x, grid.y, grid.z), dim3(block.x, block.y, block.z),
                          pointers, shared_bytes, static_cast<hipStream_t>(stream.handle)),
          "hipLaunchKernel");
}
#else
/// Without ROCm's headers kernels are only compiled, to be looked at (docs/hip.md).
template <class Args>
void launch(Kernel<Args> kernel, Extent grid, Extent block, std::size_t shared_bytes, Stream,
            const std::type_identity_t<Args>&) {
  throw_launch_error("launch", kernel.name, grid, block, shared_bytes, "no runtime",
                     "compiled without ROCm's headers");
}
#endif

}  // namespace attest::hip::inline on_rocm
