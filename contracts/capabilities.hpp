#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// Yes, or no with the reason a person reads. Never a bool without one.
struct Answer {
  bool yes = true;
  std::string reason;
  explicit operator bool() const { return yes; }
  static Answer no(std::string why) { return {false, std::move(why)}; }
};

/// What a backend declares about its kernel. Rules and the judge read it; nothing is probed.
struct Capabilities {
  Signature signature = Signature::unified;
  std::vector<Dtype> q_dtypes = {Dtype::bf16};
  std::vector<Dtype> kv_dtypes = {Dtype::bf16};
  bool window = true;
  bool softcap = true;
  bool sinks = true;
  bool tree_mask = false;
  bool distinct_v_head_dim = true;  ///< v_head_dim != head_dim
  bool returns_lse = false;
  /// The kernel computes K/V offsets in the dtype of seqused_k (or req_to_token), so int32 wraps
  /// past 2^31: makes the dtype rule `wrong` instead of `policy`.
  bool length_dtype_reaches_offsets = false;
  bool index_dtype_reaches_offsets = false;  ///< slot * stride in req_to_token's dtype
  /// max_len_extend must equal the longest request, not only cover it: makes a larger one `wrong`
  /// instead of `policy`.
  bool max_len_is_exact = false;
  /// 0 * NaN reaches the output from V slots past kv_len of the last page (a tile equals a page).
  bool reads_v_past_kv_len = false;
  /// Launches have forms, 2d and 3d, and RunOptions can force one.
  bool forms = false;
  std::int64_t most_kv_splits = 0;  ///< that RunOptions can force; 0 = none
  /// Can take its process down (device kernels, foreign code): the judge runs it in a worker.
  bool isolate = false;
  /// Its pools may be sparse memory past 64 MiB; cases of such pools are drawn.
  bool large_pools = true;
  /// Tokens of a page that it takes; empty = any.
  std::vector<std::int64_t> page_sizes;
  /// Can run a call as a captured graph that is replayed.
  bool graphs = false;
};

/// A kernel nobody vouches for: every trap some published kernel of a signature has is one of its
/// own. Calls that name no backend are checked against it.
inline Capabilities strict_capabilities() {
  Capabilities strict;
  strict.length_dtype_reaches_offsets = true;
  strict.index_dtype_reaches_offsets = true;
  strict.max_len_is_exact = true;
  return strict;
}

}  // namespace attest
