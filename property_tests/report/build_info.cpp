#include "property_tests/report/build_info.hpp"

namespace attest {

const BuildInfo& build_info() {
  static constexpr BuildInfo info{ATTEST_VERSION, ATTEST_REVISION, ATTEST_COMPILER,
                                  ATTEST_FLAGS,   ATTEST_ARCH,     ATTEST_SANITIZERS};
  return info;
}

std::string to_string(const BuildInfo& info) {
  std::string text = "attest " + std::string(info.version) + " (" + std::string(info.revision) +
                     ")\ncompiler   " + std::string(info.compiler) + "\nflags      " +
                     std::string(info.flags);
  if (!info.arch.empty()) text += "\narch       " + std::string(info.arch);
  if (!info.sanitizers.empty()) text += "\nsanitizers " + std::string(info.sanitizers);
  return text + "\n";
}

}  // namespace attest
