#include "backends/hip/runtime/hip_on_rocm.hpp"

// Not sorted in: it speaks the words of the header above.
#include "backends/hip/runtime/device_implementation.hpp"

namespace attest::hip {

const DeviceRuntime* rocm_runtime() {
  static const HipRuntime runtime({ATTEST_DEVICE_ARCHITECTURES, example_on_rocm, fill_on_rocm});
  return &runtime;
}

}  // namespace attest::hip
