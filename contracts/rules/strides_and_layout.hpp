#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Ranks, sizes and strides of the tensors of unified and mla_decode.
std::span<const Rule> strides_and_layout_rules();

}  // namespace attest
