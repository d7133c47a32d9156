#pragma once

#include <string>
#include <string_view>

namespace attest {

/// What this binary was made of. Fixed when the build was configured.
struct BuildInfo {
  std::string_view version;     ///< "0.1.0"
  std::string_view revision;    ///< git describe, or "unknown" outside a repository
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view flags;       ///< of the build type
  std::string_view arch;        ///< -march of the reference and the fills; empty = the default
  std::string_view sanitizers;  ///< "address,undefined" or empty
};

const BuildInfo& build_info();

/// Several lines: version, revision, compiler, flags.
std::string to_string(const BuildInfo& info);

}  // namespace attest
