#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Strides and layout of extend and decode.
std::span<const Rule> cpu_layout_rules();

}  // namespace attest
