#pragma once

#include <optional>

#include "contracts/call.hpp"

namespace attest {

/// What this kernel returns: rows and heads of q, head_dim of v, bf16 for fp8.
TensorMeta output_of(const BatchPrefillCall& call);

/// The output of a kernel that returns it, which is no argument then. Nothing where the output is
/// an argument.
std::optional<TensorMeta> returned_output(const Call& call);

}  // namespace attest
