#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Where decode stores the new token.
std::span<const Rule> loc_rules();

}  // namespace attest
