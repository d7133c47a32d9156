#include "backends/hip/runtime/device.hpp"

namespace attest::hip {

const DeviceRuntime* rocm_runtime() { return nullptr; }

}  // namespace attest::hip
