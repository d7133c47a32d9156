#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// What one launch may cost. Whoever wrote a fixture chose its sizes and strides, and a
/// page of JSON must take neither the machine's memory nor its afternoon.
struct LaunchLimits {
  double tensor_bytes = 1LL << 30;   ///< reach of q, out, new K or V, scratch: each
  double pool_bytes = 1LL << 38;     ///< address space of K, and of V
  double used_bytes = 1LL << 31;     ///< pages of K, and of V, that hold tokens
  double multiply_adds = 1LL << 36;  ///< rows * heads * keys * (head_dim + v_head_dim)
};

/// Why this call of this Problem is not launched: what it says of its tensors cannot be filled for
/// the Problem, or it costs more than the limits. Names the argument, its numbers and the limit;
/// nothing: launch it. `kv_splits` is the forced split count, 0 for none. Costs no more than the
/// call's own arrays, whatever its sizes.
std::optional<std::string> cannot_launch(const Call& call, const Problem& problem,
                                         const SlotMap& slots, std::int64_t kv_splits = 0,
                                         const LaunchLimits& limits = {});

}  // namespace attest
