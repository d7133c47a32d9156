#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Strides, layout and offset widths of extend and decode.
std::span<const Rule> cpu_layout_rules();

}  // namespace attest
