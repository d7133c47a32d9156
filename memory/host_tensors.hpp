#pragma once

#include <optional>
#include <string>

#include "contracts/call.hpp"
#include "contracts/output.hpp"
#include "memory/guarded_buffer.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Host tensors of one call. The buffer spans the whole view from its element 0 (strides honoured,
/// stride 0 included; the last dimension must be dense); bytes between rows hold poison. Inputs are
/// sealed: GuardedBuffer::damage() reports a kernel that writes to them.
/// All throw std::invalid_argument for a view of another rank or row length than the model's.

/// q of `meta.shape` = (rows, num_q_heads, head_dim). Rows past the Problem's are padding.
GuardedBuffer make_q(const TensorSource& source, const TensorMeta& meta);
/// K or V rows of the new tokens, (rows, num_kv_heads, dim): `half_is_v` picks V. Padding as in q.
GuardedBuffer make_new_kv(const TensorSource& source, const TensorMeta& meta, bool half_is_v);
/// Sinks (num_q_heads) in meta.dtype.
GuardedBuffer make_sinks(const TensorSource& source, const TensorMeta& meta);

/// Output buffer of `meta` filled with the sentinel: a NaN no kernel writes, different for
/// `variant` 0 and 1 (two runs with both tell "not written" from "NaN written"). fp8 has too few
/// NaNs: 0x7f and 0xff in e4m3fn; its NaN and its most negative value in fnuz.
GuardedBuffer make_output(const TensorMeta& meta, int variant);
/// Decodes it after the run.
Output read_output(const GuardedBuffer& buffer, const TensorMeta& meta, int variant);
/// Guards overwritten, or bytes between the rows of the output that no longer hold the sentinel.
std::optional<std::string> output_damage(const GuardedBuffer& buffer, const TensorMeta& meta,
                                         int variant);

}  // namespace attest
