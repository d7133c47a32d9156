#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What must hold of the step itself before any call can be right: new tokens are stored where
/// nothing else lies.
std::span<const Rule> new_token_slots_rules();

}  // namespace attest
