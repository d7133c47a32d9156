#pragma once

#include "backends/hip/kernels/paged_args.hpp"
#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip {

/// Starts the attention kernel (and with several splits the reduction) for q of one computing type,
/// on `stream`. \param row_groups 1, 2 or 4: 16, 32 or 64 packed rows a block.
/// \throws what launch() throws; std::invalid_argument for head sizes above largest_head_dim.
using PagedLaunch = void (*)(Stream stream, const PagedArgs& args, int row_groups);

/// Lengths that a framework leaves to the device: committed tokens plus the call's new ones.
struct LengthsCall {
  IndexArgs committed;                       ///< (batch)
  void* lengths = nullptr;                   ///< (batch) of the same type
  const std::int32_t* first_rows = nullptr;  ///< (batch + 1), or rows_each new tokens each
  std::int32_t rows_each = 1, batch = 0;
};
using LengthsLaunch = void (*)(Stream stream, const LengthsCall& call);

/// The launches of one engine. fp8 q computes in bf16.
struct PagedKernels {
  PagedLaunch bf16 = nullptr, f16 = nullptr, f32 = nullptr;
  /// One latent pool: K rows of up to 576 elements whose first v_head_dim are V; bf16 and f16.
  PagedLaunch latent_bf16 = nullptr, latent_f16 = nullptr;
  LengthsLaunch lengths = nullptr;
  /// bf16 with the mistake in PagedArgs::wrap.
  PagedLaunch wrapped_bf16 = nullptr;
};

inline constexpr int largest_head_dim = 256;
inline constexpr int largest_latent_dim = 576;

// One per engine; which of them exist depends on ATTEST_HIP.
PagedKernels paged_kernels_on_host();
PagedKernels paged_kernels_on_cuda();
PagedKernels paged_kernels_on_rocm();

}  // namespace attest::hip
