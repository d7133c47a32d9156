#pragma once

#include <string>

#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/device_diagnosis.hpp"
#include "backends/hip/runtime/example.hpp"

namespace attest::hip {

/// Runs the example kernel on device `index`. Whether the binary holds code for the device is found
/// by this launch and not by comparing names: the driver knows best which code it takes.
Answer try_device(const DeviceRuntime& runtime, int index,
                  void (*example)(Stream, const ExampleCall&),
                  const MachineView& view = MachineView::real());

/// "device 3 was asked for; there are: 0 NVIDIA H200;" or why there is none at all.
std::string no_such_device(const DeviceRuntime& runtime, int index,
                           const MachineView& view = MachineView::real());

}  // namespace attest::hip
