#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Whether the caches of a call are the layer's pool.
std::span<const Rule> cache_layout_rules();

}  // namespace attest
