#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What the host code of unified launches. Applies to calls that say so.
std::span<const Rule> launch_rules();

}  // namespace attest
