#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// The draft tree of extend.
std::span<const Rule> tree_mask_rules();

}  // namespace attest
