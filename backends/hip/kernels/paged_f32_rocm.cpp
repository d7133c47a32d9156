#include "backends/hip/kernels/engine_launches.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {

void paged_f32_on_rocm(Stream stream, const PagedArgs& args, int row_groups) {
  launch_paged<float>(stream, args, row_groups);
}

}  // namespace attest::hip
