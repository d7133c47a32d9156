#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What a live request must have before any call can be right about it.
std::span<const Rule> live_requests_rules();

}  // namespace attest
