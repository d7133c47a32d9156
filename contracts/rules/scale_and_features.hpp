#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Scale, softcap, window, sinks, descales and masks of unified and mla_decode.
std::span<const Rule> scale_and_features_rules();

}  // namespace attest
