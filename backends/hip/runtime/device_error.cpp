#include "backends/hip/runtime/device_error.hpp"

#include <string>

namespace attest::hip {
namespace {

std::string text(Extent extent) {
  return std::to_string(extent.x) + "x" + std::to_string(extent.y) + "x" + std::to_string(extent.z);
}

}  // namespace

void throw_launch_error(std::string_view call, std::string_view kernel, Extent grid, Extent block,
                        std::size_t shared_bytes, std::string_view error, std::string_view says) {
  std::string what(call);
  what.append("(").append(kernel);
  what += ", grid " + text(grid) + ", block " + text(block) + ", shared ";
  what += std::to_string(shared_bytes) + "): ";
  what.append(error).append(" (").append(says).append(")");
  throw DeviceError(what);
}

}  // namespace attest::hip
