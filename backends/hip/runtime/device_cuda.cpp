#include "backends/hip/runtime/hip_on_cuda.hpp"

// Not sorted in: it speaks the words of the header above.
#include "backends/hip/runtime/device_implementation.hpp"

namespace attest::hip {

const DeviceRuntime* cuda_runtime() {
  static const HipRuntime runtime({ATTEST_DEVICE_ARCHITECTURES, example_on_cuda, fill_on_cuda});
  return &runtime;
}

}  // namespace attest::hip
