#include "backends/hip/runtime/device.hpp"

namespace attest::hip {

const DeviceRuntime* cuda_runtime() { return nullptr; }

}  // namespace attest::hip
