#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What every later rule relies on to index arrays: values fill their shape, sizes and strides are
/// ones a tensor can have. Applies to every signature.
std::span<const Rule> array_shape_rules();

}  // namespace attest
