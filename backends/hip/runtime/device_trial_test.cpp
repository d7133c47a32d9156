#include "backends/hip/runtime/device_trial.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace attest::hip {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// What a vendor's runtime answers, on the host's memory.
class FakeRuntime final : public DeviceRuntime {
 public:
  std::vector<DeviceInfo> found;
  std::string count_says = "hipErrorNoDevice (no ROCm-capable device is detected)";
  std::string allocation_fails;
  mutable int used = -1;

  std::string_view engine() const override { return "rocm"; }
  std::string versions() const override { return "HIP 7.0"; }
  std::string_view architectures() const override { return "gfx90a gfx942"; }
  std::vector<DeviceInfo> devices() const override { return found; }
  std::string count_error() const override { return count_says; }
  Answer usable(int) const override { return {}; }
  void use(int index) const override { used = index; }
  std::size_t free_memory() const override { return 1 << 20; }
  void* allocate(std::size_t bytes) const override {
    if (!allocation_fails.empty()) throw DeviceError(allocation_fails);
    return ::operator new(bytes);
  }
  void release(void* memory) const override { ::operator delete(memory); }
  Stream create_stream() const override { return {}; }
  void destroy(Stream) const override {}
  void synchronize(Stream) const override {}
  void upload(void* to, std::span<const std::byte> from, Stream) const override {
    std::memcpy(to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const void* from, Stream) const override {
    std::memcpy(to.data(), from, to.size());
  }
  void copy(void*, const void*, std::size_t, Stream) const override {}
  void fill(void*, std::uint32_t, std::size_t, Stream) const override {}
  void* create_event() const override { return nullptr; }
  void destroy_event(void*) const override {}
  void record(void*, Stream) const override {}
  double seconds_between(void*, void*) const override { return 0; }
  void begin_capture(Stream) const override {}
  void* end_capture(Stream) const override { return nullptr; }
  void replay(void*, Stream) const override {}
  void destroy_graph(void*) const override {}
};

DeviceInfo device(int index, const char* name, const char* architecture) {
  DeviceInfo info;
  info.index = index;
  info.name = name;
  info.architecture = architecture;
  return info;
}

MachineView machine(bool kfd, bool permitted) {
  return {.exists = [kfd](const auto& path) { return kfd || path.string() != "/dev/kfd"; },
          .accessible =
              [permitted](const auto& path) { return permitted || path.string() != "/dev/kfd"; }};
}

void sums(Stream, const ExampleCall& call) { *call.out = 64; }
void sums_wrongly(Stream, const ExampleCall& call) { *call.out = 63; }
void has_no_code(Stream, const ExampleCall&) {
  throw DeviceError("hipLaunchKernel(example_kernel): hipErrorNoBinaryForGpu (no kernel image)");
}

TEST(DeviceTrial, TakesTheDeviceThatSumsRight) {
  FakeRuntime runtime;
  runtime.found = {device(0, "MI300X", "gfx942"), device(1, "MI210", "gfx90a")};
  EXPECT_TRUE(try_device(runtime, 1, sums, machine(true, true)).yes);
  EXPECT_EQ(runtime.used, 1);
}

TEST(DeviceTrial, SaysThatThereIsNoDeviceAndWhatTheRuntimeSaid) {
  const FakeRuntime runtime;
  EXPECT_THAT(
      try_device(runtime, 0, sums, machine(false, false)).reason,
      AllOf(HasSubstr("no device: /dev/kfd does not exist"), HasSubstr(runtime.count_says)));
  EXPECT_EQ(try_device(runtime, 0, sums, machine(true, true)).reason,
            "no device: " + runtime.count_says);
}

TEST(DeviceTrial, SaysThatThePermissionForTheDeviceFileIsMissing) {
  const FakeRuntime runtime;
  EXPECT_THAT(try_device(runtime, 0, sums, machine(true, false)).reason,
              AllOf(HasSubstr("no permission for /dev/kfd"), HasSubstr("render"),
                    HasSubstr(runtime.count_says)));
}

TEST(DeviceTrial, ListsTheDevicesWhereAnotherWasAskedFor) {
  FakeRuntime runtime;
  runtime.found = {device(0, "MI300X", "gfx942"), device(1, "MI210", "gfx90a")};
  EXPECT_EQ(try_device(runtime, 7, sums, machine(true, true)).reason,
            "device 7 was asked for; there are: 0 MI300X; 1 MI210;");
}

TEST(DeviceTrial, SaysWhichCodeTheBinaryHoldsWhereTheDeviceTakesNone) {
  FakeRuntime runtime;
  runtime.found = {device(0, "RX 7900", "gfx1100")};
  EXPECT_THAT(try_device(runtime, 0, has_no_code, machine(true, true)).reason,
              AllOf(HasSubstr("this binary holds code for gfx90a gfx942"),
                    HasSubstr("device 0 (RX 7900, gfx1100) does not take"),
                    HasSubstr("hipErrorNoBinaryForGpu")));
}

TEST(DeviceTrial, TellsAWrongSumAndAFailedCallFromMissingCode) {
  FakeRuntime runtime;
  runtime.found = {device(0, "MI300X", "gfx942")};
  EXPECT_THAT(try_device(runtime, 0, sums_wrongly, machine(true, true)).reason,
              HasSubstr("summed 64 ones to 63"));
  runtime.allocation_fails = "hipMalloc(128): hipErrorOutOfMemory (out of memory)";
  EXPECT_EQ(try_device(runtime, 0, sums, machine(true, true)).reason, runtime.allocation_fails);
}

}  // namespace
}  // namespace attest::hip
