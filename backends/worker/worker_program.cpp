#include "backends/worker/worker_program.hpp"

#include <filesystem>
#include <system_error>

namespace attest {

std::vector<std::string> worker_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return {(self.parent_path() / "attest").string(), "worker"};
}

}  // namespace attest
