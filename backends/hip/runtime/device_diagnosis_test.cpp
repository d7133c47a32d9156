#include "backends/hip/runtime/device_diagnosis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/fill.hpp"

namespace attest::hip {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A machine that has these files, of which it may open those.
MachineView machine(const std::set<std::string>& present, const std::set<std::string>& open) {
  return {.exists = [present](const auto& path) { return present.contains(path.string()); },
          .accessible = [open](const auto& path) { return open.contains(path.string()); }};
}

TEST(DeviceDiagnosis, NamesTheMissingDeviceFile) {
  EXPECT_THAT(
      why_no_device("rocm", "hipErrorNoDevice (none)", machine({}, {})),
      AllOf(HasSubstr("no device: /dev/kfd does not exist"), HasSubstr("hipErrorNoDevice (none)")));
  EXPECT_THAT(why_no_device("cuda", "cudaErrorNoDevice (none)", machine({}, {})),
              AllOf(HasSubstr("no device: /dev/nvidiactl does not exist"), Not(HasSubstr("kfd"))));
  EXPECT_THAT(why_no_device("cuda", "x", machine({"/dev/nvidiactl"}, {"/dev/nvidiactl"})),
              HasSubstr("/dev/nvidia-uvm does not exist"));
}

TEST(DeviceDiagnosis, NamesTheMissingPermission) {
  EXPECT_THAT(why_no_device("rocm", "x", machine({"/dev/kfd", "/dev/dri"}, {"/dev/dri"})),
              AllOf(HasSubstr("no permission for /dev/kfd"), HasSubstr("group")));
  EXPECT_THAT(why_no_device("cuda", "x", machine({"/dev/nvidiactl"}, {})),
              HasSubstr("no permission for /dev/nvidiactl"));
}

TEST(DeviceDiagnosis, LeavesTheRestToTheDriversOwnWords) {
  const std::set<std::string> files = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
  EXPECT_EQ(why_no_device("cuda", "cudaErrorInsufficientDriver (too old)", machine(files, files)),
            "no device: cudaErrorInsufficientDriver (too old)");
}

TEST(DeviceDiagnosis, TheRealMachineIsLookedAt) {
  const MachineView view = MachineView::real();
  EXPECT_TRUE(view.exists("/dev/null"));
  EXPECT_TRUE(view.accessible("/dev/null"));
  EXPECT_FALSE(view.exists("/dev/no such file"));
  EXPECT_FALSE(view.accessible("/dev/no such file"));
}

TEST(LaunchError, NamesTheCallItsKernelAndTheError) {
  try {
    throw_launch_error("cudaLaunchKernel", "split_kernel<128>", {4, 2}, {128}, 65536,
                       "cudaErrorInvalidValue", "invalid argument");
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()),
              "cudaLaunchKernel(split_kernel<128>, grid 4x2x1, block 128x1x1, shared 65536): "
              "cudaErrorInvalidValue (invalid argument)");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Fill, RepeatsThePatternToTheLastByteAndNoFurther) {
  for (const std::size_t bytes : {0U, 1U, 15U, 16U, 17U, 4099U}) {
    alignas(16) std::array<std::uint8_t, 4112> memory{};
    fill_on_host({}, {memory.data(), bytes, 0x04030201U});
    for (std::size_t i = 0; i < memory.size(); ++i) {
      ASSERT_EQ(memory[i], i < bytes ? i % 4 + 1 : 0) << i << " of " << bytes;
    }
  }
}

}  // namespace
}  // namespace attest::hip
