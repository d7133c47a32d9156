#pragma once

#include "backends/hip/kernels/running_softmax.hpp"

namespace attest::hip {

/// Stores element `at` of the output in its format.
__device__ __forceinline__ void write_out(const PagedArgs& args, std::int64_t at, float value) {
  if (args.out_format == Format::bf16) {
    store(static_cast<Bf16*>(args.out.data)[at], value);
  } else if (args.out_format == Format::f16) {
    store(static_cast<Fp16*>(args.out.data)[at], value);
  } else {
    static_cast<float*>(args.out.data)[at] = value;
  }
}

__device__ inline void write_lse(const PagedArgs& args, std::int64_t row, std::int32_t head,
                                 const RowStats& stats) {
  if (args.lse != nullptr) args.lse[row * args.num_q_heads + head] = stats.lse();
}

__device__ inline float factor(const float* descale) { return descale != nullptr ? *descale : 1; }

/// Row number of a (row, head) in the split form's arrays.
__device__ inline std::int64_t part_of(const PagedArgs& args, std::int64_t row, std::int32_t head,
                                       int split) {
  return (row * args.num_q_heads + head) * args.splits + split;
}

}  // namespace attest::hip
