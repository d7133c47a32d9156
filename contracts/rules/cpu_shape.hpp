#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Ranks and sizes of extend and decode: what their other rules rely on.
std::span<const Rule> cpu_shape_rules();

}  // namespace attest
