#pragma once

// The words that mark device code, for whichever compiler reads this: nvcc brings them along, HIP's
// header defines them, clang's HIP mode without ROCm has only the attributes behind them, and a
// host compiler needs none. These are HIP's own names, not ours; include this only from kernel
// sources.
//
// There is deliberately no __shared__ on the host: shared memory comes from dynamic_shared(), which
// the host can fill with NaN and watch. A kernel with static shared memory does not compile there.

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#elif defined(__HIP__)
#if defined(__CLANG_HIP_RUNTIME_WRAPPER_H__)  // not with -nogpuinc
#include <hip/hip_runtime.h>
#else
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#include "backends/hip/runtime/amdgcn_builtins.hpp"
#endif
#else
// HIP chose these names, so that they are reserved is no finding.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreserved-macro-identifier"
#endif
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#endif
