#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Padded and dummy rows of unified and mla_decode.
std::span<const Rule> padding_rules();

}  // namespace attest
