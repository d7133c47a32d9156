#include "backends/hip/runtime/device_diagnosis.hpp"

#include <unistd.h>

#include <array>

namespace attest::hip {
namespace {

struct DeviceFile {
  std::string_view engine;
  std::string_view path;
  std::string_view absent;      ///< what its absence means
  std::string_view permission;  ///< how one gets it
};

constexpr std::array files = {
    DeviceFile{"cuda", "/dev/nvidiactl", "no NVIDIA driver is loaded, or this container got no GPU",
               "usually mode 0666; a container needs the NVIDIA runtime"},
    DeviceFile{"cuda", "/dev/nvidia-uvm", "the driver's memory module nvidia-uvm is not loaded",
               "usually mode 0666; a container needs the NVIDIA runtime"},
    DeviceFile{"rocm", "/dev/kfd",
               "no amdgpu compute driver is loaded, or this container got no GPU",
               "join the groups render and video; a container needs --device /dev/kfd"},
    DeviceFile{"rocm", "/dev/dri", "there is no render node",
               "a container needs --device /dev/dri"},
};

}  // namespace

MachineView MachineView::real() {
  return {.exists =
              [](const std::filesystem::path& path) {
                std::error_code ignored;
                return std::filesystem::exists(path, ignored);
              },
          .accessible =
              [](const std::filesystem::path& path) {
                std::error_code ignored;
                const bool folder = std::filesystem::is_directory(path, ignored);
                return access(path.c_str(), folder ? R_OK | X_OK : R_OK | W_OK) == 0;
              }};
}

std::string why_no_device(std::string_view engine, std::string_view error,
                          const MachineView& view) {
  std::string why = "no device";
  for (const DeviceFile& file : files) {
    if (file.engine != engine) continue;
    const std::filesystem::path path(file.path);
    if (!view.exists(path)) {
      why.append(": ")
          .append(file.path)
          .append(" does not exist (")
          .append(file.absent)
          .append(")");
      break;
    }
    if (!view.accessible(path)) {
      why = "no permission for ";
      why.append(file.path).append(" (").append(file.permission).append(")");
      break;
    }
  }
  return why.append(": ").append(error);
}

}  // namespace attest::hip
