#include "backends/hip/kernels/lengths_kernel.hpp"

namespace attest::hip {

void lengths_on_host(Stream stream, const LengthsCall& call) { launch_lengths(stream, call); }

}  // namespace attest::hip
