#pragma once

#include <cstdint>

#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip {

/// Repeats a pattern over memory of the engine.
struct FillCall {
  void* to = nullptr;  ///< 16-byte aligned
  std::uint64_t bytes = 0;
  std::uint32_t pattern = 0;  ///< its low byte first
};

// One per engine; which of them exist depends on ATTEST_HIP.
void fill_on_host(Stream stream, const FillCall& call);
void fill_on_cuda(Stream stream, const FillCall& call);
void fill_on_rocm(Stream stream, const FillCall& call);

}  // namespace attest::hip
