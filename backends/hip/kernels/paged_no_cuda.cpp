#include "backends/hip/kernels/paged_launch.hpp"

namespace attest::hip {

/// ATTEST_HIP left the engine out.
PagedKernels paged_kernels_on_cuda() { return {}; }

}  // namespace attest::hip
