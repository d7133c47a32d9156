#pragma once

#include <algorithm>

#include "backends/hip/runtime/fill.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

struct alignas(16) FourWords {
  std::uint32_t word[4];
};

/// Pools are filled up to 16 GiB: 64-bit offsets, 16 bytes at a time.
__global__ void fill_kernel(FillCall args) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t self = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t whole = args.bytes / sizeof(FourWords);
  const FourWords four{{args.pattern, args.pattern, args.pattern, args.pattern}};
  for (std::uint64_t i = self; i < whole; i += threads) static_cast<FourWords*>(args.to)[i] = four;
  for (std::uint64_t i = whole * sizeof(FourWords) + self; i < args.bytes; i += threads) {
    static_cast<std::uint8_t*>(args.to)[i] =
        static_cast<std::uint8_t>(args.pattern >> (8 * (i % 4)));
  }
}

void launch_fill(Stream stream, const FillCall& call) {
  constexpr unsigned threads = 256;
  constexpr std::uint64_t most = 4096;
  const std::uint64_t wanted = call.bytes / (threads * sizeof(FourWords)) + 1;
  const auto blocks = static_cast<unsigned>(std::min(wanted, most));
  launch(kernel<fill_kernel>, {blocks}, {threads}, 0, stream, call);
}

}  // namespace
}  // namespace attest::hip
