#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Rules on arrays that kernels read as pointer + i: SGLang's CPU index arrays, sinks, and the rows
/// of page tables.
std::span<const Rule> dense_arrays_rules();

}  // namespace attest
