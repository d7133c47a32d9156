#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Ranks and counts that the later rules of unified and mla_decode index by.
std::span<const Rule> call_shape_rules();

}  // namespace attest
