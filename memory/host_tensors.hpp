#pragma once

#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/output.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Fills one dense or strided host tensor from the source. The buffer spans the whole view (strides
/// honoured); bytes between rows hold poison.

/// q of `meta.shape` = (rows, num_q_heads, head_dim).
GuardedBuffer make_q(const TensorSource& source, const TensorMeta& meta);
/// K or V rows of the new tokens, (rows, num_kv_heads, dim): `half_is_v` picks V.
GuardedBuffer make_new_kv(const TensorSource& source, const TensorMeta& meta, bool half_is_v);
/// Sinks (num_q_heads) in meta.dtype.
GuardedBuffer make_sinks(const TensorSource& source, const TensorMeta& meta);

/// Output buffer of `meta` filled with the sentinel: a NaN no kernel writes, different for
/// `variant` 0 and 1 (two runs with both tell "not written" from "NaN written").
GuardedBuffer make_output(const TensorMeta& meta, int variant);
/// Decodes it after the run.
Output read_output(const GuardedBuffer& buffer, const TensorMeta& meta, int variant);

}  // namespace attest
