#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Which keys a row may see, sinks included: windows, draft trees, cross attention.
std::span<const Rule> visibility_rules();

}  // namespace attest
