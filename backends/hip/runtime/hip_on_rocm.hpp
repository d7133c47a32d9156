#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace attest::hip::inline on_rocm {

inline constexpr std::string_view api_prefix = "hip";
inline constexpr std::string_view engine_name = "rocm";
inline constexpr std::string_view product = "HIP";

/// "gfx90a:sramecc+:xnack-" is gfx90a with its settings.
inline std::string architecture_of(const hipDeviceProp_t& properties) {
  const std::string full = properties.gcnArchName;
  return full.substr(0, full.find(':'));
}
inline std::size_t shared_limit_of(const hipDeviceProp_t& properties) {
  return properties.sharedMemPerBlock;
}
inline std::string version_text(int version) {
  return std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
}

}  // namespace attest::hip::inline on_rocm
