#pragma once

#include <chrono>
#include <map>
#include <string>

#include "property_tests/judge.hpp"

namespace attest {

/// Words of --rules.
inline const std::map<std::string, RulesMode>& rules_modes() {
  static const std::map<std::string, RulesMode> modes = {
      {"enforce", RulesMode::enforce}, {"report", RulesMode::report}, {"off", RulesMode::off}};
  return modes;
}

/// Seconds of a flag as the milliseconds of a plan.
inline std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(static_cast<std::chrono::milliseconds::rep>(seconds * 1000));
}

}  // namespace attest
