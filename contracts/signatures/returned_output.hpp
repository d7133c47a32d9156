#pragma once

#include <optional>

#include "contracts/call.hpp"

namespace attest {

/// The output of a kernel that returns it, which is no argument then: rows of q, heads of v, bf16
/// for fp8. Nothing where the output is an argument.
std::optional<TensorMeta> returned_output(const Call& call);

}  // namespace attest
