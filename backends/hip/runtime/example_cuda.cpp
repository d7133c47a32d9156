#include "backends/hip/runtime/example_kernel.hpp"

namespace attest::hip {

void example_on_cuda(Stream stream, const ExampleCall& call) { launch_example(stream, call); }

}  // namespace attest::hip
