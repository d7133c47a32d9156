#pragma once

#include <string>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// A line as a recorder would write it for this call and its truth (docs/captured_calls.md): every
/// array with its values, every tensor with its layout. Models without sinks, descales and windows.
std::string captured_text(const UnifiedCall& call, const Problem& problem, const SlotMap& slots);

}  // namespace attest
