#pragma once

#include "contracts/call.hpp"
#include "contracts/capabilities.hpp"

namespace attest {

/// Whether the scalar kernel can address the call's tensors at all: ranks, dtypes, unit strides
/// within a row, recorded values. What the numbers mean is not looked at.
Answer addressable(const Call& call, const Capabilities& capabilities);

}  // namespace attest
