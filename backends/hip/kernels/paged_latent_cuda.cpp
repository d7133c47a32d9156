#include "backends/hip/kernels/engine_launches.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {

void latent_bf16_on_cuda(Stream stream, const PagedArgs& args, int row_groups) {
  launch_latent<Bf16>(stream, args, row_groups);
}

void latent_f16_on_cuda(Stream stream, const PagedArgs& args, int row_groups) {
  launch_latent<Fp16>(stream, args, row_groups);
}

PagedKernels paged_kernels_on_cuda() {
  return {.bf16 = paged_bf16_on_cuda,
          .f16 = paged_f16_on_cuda,
          .f32 = paged_f32_on_cuda,
          .latent_bf16 = latent_bf16_on_cuda,
          .latent_f16 = latent_f16_on_cuda,
          .lengths = lengths_on_cuda,
          .wrapped_bf16 = wrapped_bf16_on_cuda};
}

}  // namespace attest::hip
