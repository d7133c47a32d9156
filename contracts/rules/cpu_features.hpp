#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Sinks, encoder, cross attention and optional tensors of extend and decode.
std::span<const Rule> cpu_features_rules();

}  // namespace attest
