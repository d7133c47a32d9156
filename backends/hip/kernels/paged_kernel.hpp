#pragma once

#include "backends/hip/kernels/paged_attention.hpp"

namespace attest::hip {

// A kernel has internal linkage: one binary holds a build of it for each engine.
namespace {

/// Grid: (blocks of rows, kv heads, splits * chunks of v); block: S::threads; shared memory:
/// SharedLayout<T, S>::bytes.
template <class T, class S, PlantedFault fault>
__global__ void
#if defined(__CUDACC__)
__launch_bounds__(S::threads, S::resident_blocks)
#else
__launch_bounds__(S::threads)
#endif
    paged_attention(PagedArgs args) {
  const BlockWork work = work_of_block<fault>(args, blockIdx.x, S::rows);
  if (work.request < 0) return;
  const auto split = static_cast<std::int32_t>(blockIdx.z) % args.splits;
  const auto v_chunk = static_cast<std::int32_t>(blockIdx.z) / args.splits;
  PagedAttention<T, S, fault> block(args, work, static_cast<std::int32_t>(blockIdx.y), v_chunk,
                                    dynamic_shared<unsigned char>());
  block.run(split);
}

}  // namespace
}  // namespace attest::hip
