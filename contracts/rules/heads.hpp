#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Head counts of unified and mla_decode.
std::span<const Rule> heads_rules();

}  // namespace attest
