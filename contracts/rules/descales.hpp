#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Dequantisation scales of unified and mla_decode.
std::span<const Rule> descales_rules();

}  // namespace attest
