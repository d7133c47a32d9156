#include "backends/hip/runtime/fill_kernel.hpp"

namespace attest::hip {

void fill_on_host(Stream stream, const FillCall& call) { launch_fill(stream, call); }

}  // namespace attest::hip
