#pragma once

// The smallest kernel that uses all of kernel.hpp's parts, and the pattern every kernel follows:
// this header is included by example_host.cpp and, where those engines are built, example_cuda.cpp
// and example_rocm.cpp, which export the launch under one name each. `attest doctor` launches it to
// see whether a device runs this binary's code at all.

#include "backends/hip/runtime/example.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

struct ExampleArgs {
  const Bf16* in;  ///< (blocks, threads)
  float* out;      ///< (blocks)
};

/// One sum per block: within each wave by shuffles, between waves through shared memory.
__global__ void example_kernel(ExampleArgs args) {
  const unsigned wave = static_cast<unsigned>(wave_size());
  auto* const sums = dynamic_shared<float>();
  float sum = to_float(args.in[std::size_t{blockIdx.x} * blockDim.x + threadIdx.x]);
  for (int distance = wave_size() / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor(sum, distance);
  }
  if (threadIdx.x % wave == 0) sums[threadIdx.x / wave] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  sum = 0;
  for (unsigned i = 0; i < blockDim.x / wave; ++i) sum += sums[i];
  args.out[blockIdx.x] = sum;
}

void launch_example(Stream stream, const ExampleCall& call) {
  constexpr std::size_t smallest_wave = 32;
  const std::size_t shared_bytes = call.threads / smallest_wave * sizeof(float);
  launch(kernel<example_kernel>, {call.blocks}, {call.threads}, shared_bytes, stream,
         {static_cast<const Bf16*>(call.in), call.out});
}

}  // namespace
}  // namespace attest::hip
