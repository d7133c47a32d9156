#pragma once

#include <span>
#include <string_view>

#include "property_tests/case.hpp"

namespace attest {

/// A word of features_of() (generators.hpp) that a case has or has not. The others are of every
/// case: its mode, its recipe, its kind of heads, "page 16", "bf16 kv".
struct CaseFeature {
  std::string_view name;
  std::string_view says;  ///< one clause
  bool (*has)(const Case& c);
};
std::span<const CaseFeature> all_case_features();

}  // namespace attest
