#pragma once

#include <cstdint>

#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip {

/// Sums each of `blocks` rows of `threads` bf16 numbers; pointers of the engine's own memory.
struct ExampleCall {
  const void* in = nullptr;  ///< (blocks, threads) bf16
  float* out = nullptr;      ///< (blocks)
  unsigned blocks = 0;
  unsigned threads = 0;  ///< a multiple of the wave size
};

// One per engine; which of them exist depends on ATTEST_HIP. \throws what launch() throws.
void example_on_host(Stream stream, const ExampleCall& call);
void example_on_cuda(Stream stream, const ExampleCall& call);
void example_on_rocm(Stream stream, const ExampleCall& call);

}  // namespace attest::hip
