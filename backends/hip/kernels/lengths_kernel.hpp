#pragma once

#include "backends/hip/kernels/block_work.hpp"
#include "backends/hip/kernels/engine_launches.hpp"
#include "backends/hip/runtime/kernel.hpp"

namespace attest::hip {
namespace {

inline constexpr unsigned lengths_threads = 64;

/// Grid: batch / lengths_threads; one thread a request.
__global__ void lengths_kernel(LengthsCall call) {
  const auto i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= call.batch) return;
  std::int64_t length = index_at(call.committed, i) + call.rows_each;
  if (call.first_rows != nullptr) {
    length += call.first_rows[i + 1] - call.first_rows[i] - call.rows_each;
  }
  if (call.committed.wide != 0) {
    static_cast<std::int64_t*>(call.lengths)[i] = length;
  } else {
    static_cast<std::int32_t*>(call.lengths)[i] = static_cast<std::int32_t>(length);
  }
}

void launch_lengths(Stream stream, const LengthsCall& call) {
  const auto batch = static_cast<unsigned>(call.batch);
  launch(kernel<lengths_kernel>, {(batch + lengths_threads - 1) / lengths_threads},
         {lengths_threads}, 0, stream, call);
}

}  // namespace
}  // namespace attest::hip
