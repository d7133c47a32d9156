#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What only batch_prefill asks for.
std::span<const Rule> prefill_rules();

}  // namespace attest
