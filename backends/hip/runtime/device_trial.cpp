#include "backends/hip/runtime/device_trial.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/hip/runtime/device_objects.hpp"

namespace attest::hip {
namespace {

constexpr unsigned threads = 64;
constexpr std::uint16_t one = 0x3f80;  // in bf16

/// Sums 64 ones. \throws DeviceError when anything but the launch fails.
Answer sum_ones(const DeviceRuntime& runtime, const DeviceInfo& device,
                void (*example)(Stream, const ExampleCall&)) {
  const std::vector<std::uint16_t> ones(threads, one);
  const DeviceMemory in = allocate(runtime, threads * sizeof(std::uint16_t));
  const DeviceMemory out = allocate(runtime, sizeof(float));
  runtime.upload(in.get(), std::as_bytes(std::span(ones)), {});
  const std::string which = "device " + std::to_string(device.index) + " (" + device.name + ", " +
                            device.architecture + ")";
  try {
    example({}, {in.get(), static_cast<float*>(out.get()), 1, threads});
  } catch (const DeviceError& error) {
    return Answer::no("this binary holds code for " + std::string(runtime.architectures()) +
                      ", which " + which + " does not take: " + error.what());
  }
  float sum = 0;
  runtime.download(std::as_writable_bytes(std::span(&sum, 1)), out.get(), {});
  runtime.synchronize({});
  if (sum == static_cast<float>(threads)) return {};
  return Answer::no(which + " summed 64 ones to " + std::to_string(sum));
}

}  // namespace

Answer try_device(const DeviceRuntime& runtime, int index,
                  void (*example)(Stream, const ExampleCall&), const MachineView& view) {
  try {
    for (const DeviceInfo& device : runtime.devices()) {
      if (device.index != index) continue;
      runtime.use(index);
      return sum_ones(runtime, device, example);
    }
    return Answer::no(no_such_device(runtime, index, view));
  } catch (const DeviceError& error) {
    return Answer::no(error.what());
  }
}

std::string no_such_device(const DeviceRuntime& runtime, int index, const MachineView& view) {
  const std::vector<DeviceInfo> all = runtime.devices();
  if (all.empty()) {
    return why_no_device(runtime.engine(), runtime.count_error(), view);
  }
  std::string text = "device " + std::to_string(index) + " was asked for; there are:";
  for (const DeviceInfo& device : all) {
    text += " " + std::to_string(device.index) + " " + device.name + ";";
  }
  return text;
}

}  // namespace attest::hip
