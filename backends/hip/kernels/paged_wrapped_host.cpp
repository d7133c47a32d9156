#include "backends/hip/kernels/engine_launches.hpp"
#include "backends/hip/kernels/launch_paged.hpp"

namespace attest::hip {

void wrapped_bf16_on_host(Stream stream, const PagedArgs& args, int row_groups) {
  launch_wrapped(stream, args, row_groups);
}

}  // namespace attest::hip
