#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip {

/// A call of the device's runtime failed: names the call, its arguments and the error.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// \throws DeviceError "cudaLaunchKernel(attest::hip::split<128>, grid 4x1x1, block 128x1x1, shared
/// 65536): cudaErrorInvalidValue (invalid argument)".
[[noreturn]] void throw_launch_error(std::string_view call, std::string_view kernel, Extent grid,
                                     Extent block, std::size_t shared_bytes, std::string_view error,
                                     std::string_view says);

}  // namespace attest::hip
