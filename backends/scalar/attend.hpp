#pragma once

#include <span>

#include "backends/scalar/operands.hpp"

namespace attest {

/// The kernel: softmax(scale * q k^T + mask) v for every row of every group, in float32 with an
/// online softmax over tiles of 64 keys, P rounded to q's dtype before the second product, fp32
/// sums, an optional split of the keys merged by log-sum-exp. Bits do not depend on op.threads, on
/// the other groups, or on the machine. Rows in no group stay as they were.
/// \pre rows and keys of the groups lie inside q and the K/V memory; out is checked here.
/// \throws KernelRefusal when an output row lies outside op.out.
void attend(const Operands& op, std::span<const RowGroup> groups);

/// Stores v_head_dim values of (row, q head) to the output, and their lse.
/// \throws KernelRefusal when they lie outside op.out.
void write_row(const Operands& op, std::int64_t row, std::int64_t head, const float* values,
               float lse);

}  // namespace attest
