#include "backends/hip/runtime/fill_kernel.hpp"

namespace attest::hip {

void fill_on_cuda(Stream stream, const FillCall& call) { launch_fill(stream, call); }

}  // namespace attest::hip
