#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "backends/registry.hpp"

namespace attest {

/// For tests: names of the backends a selector picks, as test parameters. A list made at discovery
/// must not depend on the machine, so it holds backends that cannot run here too.
inline std::vector<std::string> names_of(std::string_view selector) {
  std::vector<std::string> names;
  for (const Backend* backend : select_backends(selector)) names.emplace_back(backend->name());
  return names;
}

/// "scalar_unified_cpu" for "scalar.unified@cpu".
inline std::string test_name_of(const testing::TestParamInfo<std::string>& info) {
  std::string text = info.param;
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

/// Fixture over backend names. A backend that cannot run here skips with its reason, or fails when
/// ATTEST_REQUIRE names its engine.
class EveryBackend : public testing::TestWithParam<std::string> {
 protected:
  const Backend& backend() const { return *select_backends(GetParam()).front(); }

  void SetUp() override {
    const Answer answer = backend().available();
    if (answer) return;
    const char* const required = std::getenv("ATTEST_REQUIRE");
    const BackendName parts = split_backend_name(GetParam());
    const std::string engine = parts.implementation + "@" + parts.engine;
    std::istringstream list(required != nullptr ? required : "");
    for (std::string part; std::getline(list, part, ',');) {
      if (part == engine) FAIL() << engine << " is required: " << answer.reason;
    }
    GTEST_SKIP() << answer.reason;
  }
};

}  // namespace attest
