#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Rules on the memory a call's tensors lie in: inside their storage, rows apart, shared with no
/// tensor that means something else.
std::span<const Rule> tensor_memory_rules();

}  // namespace attest
