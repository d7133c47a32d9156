#include "backends/hip/kernels/engine_launches.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {

void latent_bf16_on_host(Stream stream, const PagedArgs& args, int row_groups) {
  launch_latent<Bf16>(stream, args, row_groups);
}

void latent_f16_on_host(Stream stream, const PagedArgs& args, int row_groups) {
  launch_latent<Fp16>(stream, args, row_groups);
}

PagedKernels paged_kernels_on_host() {
  return {.bf16 = paged_bf16_on_host,
          .f16 = paged_f16_on_host,
          .f32 = paged_f32_on_host,
          .latent_bf16 = latent_bf16_on_host,
          .latent_f16 = latent_f16_on_host,
          .lengths = lengths_on_host,
          .wrapped_bf16 = wrapped_bf16_on_host};
}

}  // namespace attest::hip
