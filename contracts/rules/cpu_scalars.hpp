#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Scale, logit cap and window of extend and decode.
std::span<const Rule> cpu_scalars_rules();

}  // namespace attest
