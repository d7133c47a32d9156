#pragma once

#include "backends/hip/kernels/paged_args.hpp"
#include "backends/hip/kernels/paged_launch.hpp"
#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip {

// What the files of one engine and type export to PagedKernels (paged_launch.hpp).
void paged_bf16_on_host(Stream stream, const PagedArgs& args, int row_groups);
void paged_f16_on_host(Stream stream, const PagedArgs& args, int row_groups);
void paged_f32_on_host(Stream stream, const PagedArgs& args, int row_groups);
void wrapped_bf16_on_host(Stream stream, const PagedArgs& args, int row_groups);
void latent_bf16_on_host(Stream stream, const PagedArgs& args, int row_groups);
void latent_f16_on_host(Stream stream, const PagedArgs& args, int row_groups);
void lengths_on_host(Stream stream, const LengthsCall& call);
void paged_bf16_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void paged_f16_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void paged_f32_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void wrapped_bf16_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void latent_bf16_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void latent_f16_on_cuda(Stream stream, const PagedArgs& args, int row_groups);
void lengths_on_cuda(Stream stream, const LengthsCall& call);
void paged_bf16_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void paged_f16_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void paged_f32_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void wrapped_bf16_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void latent_bf16_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void latent_f16_on_rocm(Stream stream, const PagedArgs& args, int row_groups);
void lengths_on_rocm(Stream stream, const LengthsCall& call);

}  // namespace attest::hip
