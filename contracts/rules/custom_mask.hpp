#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What legacy_extend's mask must be.
std::span<const Rule> custom_mask_rules();

}  // namespace attest
