#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace attest::hip {

/// How the machine looks to this process; replaced in tests.
struct MachineView {
  std::function<bool(const std::filesystem::path&)> exists;
  std::function<bool(const std::filesystem::path&)> accessible;  ///< may be read and written
  static MachineView real();
};

/// Why a GPU's runtime finds no device, most basic reason first: no device file, no permission for
/// it, or what the runtime itself said.
/// \param engine  "cuda" or "rocm"
/// \param error   "cudaErrorInsufficientDriver (CUDA driver version is insufficient ...)"
std::string why_no_device(std::string_view engine, std::string_view error, const MachineView& view);

}  // namespace attest::hip
