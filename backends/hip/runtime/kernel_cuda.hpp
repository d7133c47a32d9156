#pragma once

// HIP's names on CUDA. Only nvcc reads this; no header of HIP is involved.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/hip/runtime/device_error.hpp"
#include "backends/hip/runtime/launch_types.hpp"
#include "backends/hip/runtime/qualifiers.hpp"

// The inline namespace keeps these functions apart from the host engine's in one binary.
namespace attest::hip::inline on_cuda {

__device__ constexpr int wave_size() { return 32; }

/// HIP's shuffles name no lanes. The whole warp is the only set that the compiler may be told
/// without asking which lanes happen to be together (__activemask() is no promise); hence the rule
/// in kernel.hpp that living lanes come together.
inline constexpr unsigned every_lane = 0xffffffffU;

template <class T>
__device__ T __shfl(T value, int lane, int width = 32) {
  return __shfl_sync(every_lane, value, lane, width);
}
template <class T>
__device__ T __shfl_xor(T value, int mask, int width = 32) {
  return __shfl_xor_sync(every_lane, value, mask, width);
}
template <class T>
__device__ T __shfl_down(T value, unsigned delta, int width = 32) {
  return __shfl_down_sync(every_lane, value, delta, width);
}
template <class T>
__device__ T __shfl_up(T value, unsigned delta, int width = 32) {
  return __shfl_up_sync(every_lane, value, delta, width);
}
__device__ inline std::uint64_t __ballot(int predicate) {
  return __ballot_sync(every_lane, predicate);
}
__device__ inline int __any(int predicate) { return __any_sync(every_lane, predicate); }
__device__ inline int __all(int predicate) { return __all_sync(every_lane, predicate); }
__device__ inline void sync_wave() { __syncwarp(); }

__device__ inline float exp2_of(float x) { return exp2f(x); }

template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char attest_dynamic_shared[];
  return reinterpret_cast<T*>(attest_dynamic_shared);
}

/// \throws DeviceError naming the kernel and CUDA's error. Asynchronous, as CUDA's launches are.
template <class Args>
void launch(Kernel<Args> kernel, Extent grid, Extent block, std::size_t shared_bytes, Stream stream,
            const std::type_identity_t<Args>& args) {
  const void* entry = reinterpret_cast<const void*>(kernel.entry);
  constexpr std::size_t without_asking = 48 * 1024;
  const auto require = [&](cudaError_t error, const char* call) {
    if (error == cudaSuccess) return;
    throw_launch_error(call, kernel.name, grid, block, shared_bytes, cudaGetErrorName(error),
                       cudaGetErrorString(error));
  };
  if (shared_bytes > without_asking) {
    require(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)),
            "cudaFuncSetAttribute");
  }
  Args copy = args;
  void* pointers[] = {&copy};
  require(cudaLaunchKernel(entry, dim3(grid.x, grid.y, grid.z), dim3(block.x, block.y, block.z),
                           pointers, shared_bytes, static_cast<cudaStream_t>(stream.handle)),
          "cudaLaunchKernel");
}

}  // namespace attest::hip::inline on_cuda
