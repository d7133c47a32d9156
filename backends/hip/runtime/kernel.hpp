#pragma once

// What a kernel source includes; the same source then runs in three ways (docs/hip.md):
//
//   compiler                      engine   wave        launch
//   hipcc, or clang -x hip        rocm     32 or 64    hipLaunchKernel
//   nvcc                          cuda     32          cudaLaunchKernel
//   g++, clang++                  host     settings    fibers, one per thread of a block
//
// A kernel is  template <...> __global__ void name(Args args)  with one trivially copyable struct,
// in an ANONYMOUS namespace inside attest::hip: one binary holds up to three builds of it, and only
// internal linkage keeps the linker from mixing them up. The file that launches it is compiled once
// per engine and exports what that engine's file calls differently (see example_kernel.hpp).
//
// Available with one spelling in all three:
//   threadIdx, blockIdx, blockDim, gridDim (.x .y .z), __syncthreads()
//   __shfl, __shfl_xor, __shfl_down, __shfl_up (value of 4 or 8 bytes, lane, width = a whole wave)
//   __ballot (64 bits), __any, __all
//   sync_wave()               orders shared memory between the lanes of one wave
//   wave_size()               32 or 64, known at run time only
//   dynamic_shared<T>()       the launch's shared memory, as T*; 16-byte aligned
//   exp2_of(x)                2^x, +-2 units in the last place; 0 for -infinity
//   Bf16, Fp16, E4m3fn, E4m3fnuz with to_float(), to_bf16(), to_fp16(), store()
//   std::min, std::max and other constexpr functions
//   launch(kernel<name<...>>, grid, block, shared_bytes, stream, args)      host code
//
// Rules that all three need: every living lane of a wave reaches a wave operation together, every
// thread of a block reaches a barrier together, and no thread leaves while others have barriers to
// come. The host engine reports who did not, with kernel, block, thread and line.

#include <cstddef>
#include <cstdint>

#include "backends/hip/runtime/launch_types.hpp"
#include "backends/hip/runtime/qualifiers.hpp"

#if defined(__CUDACC__)
#include "backends/hip/runtime/kernel_cuda.hpp"
#elif defined(__HIP__)
#include "backends/hip/runtime/kernel_rocm.hpp"
#else
#include "backends/hip/runtime/kernel_host.hpp"
#endif

#include "backends/hip/runtime/number_formats.hpp"
