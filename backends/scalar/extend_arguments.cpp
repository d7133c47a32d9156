#include "backends/scalar/extend_arguments.hpp"

#include <string>

#include "backends/scalar/operands.hpp"

namespace attest {
namespace {

void require_batch(const char* name, const IntArray& array, std::size_t batch) {
  if (array.values.size() == batch) return;
  throw KernelRefusal(std::string(name) + " has " + std::to_string(array.values.size()) +
                      " entries, seq_lens has " + std::to_string(batch));
}

void check_tree_mask(const ExtendCall& call, const IntArray& mask) {
  if (call.is_cross_attn) throw KernelRefusal("tree_mask is not taken in cross attention");
  if (call.sliding_window_size > 0) throw KernelRefusal("tree_mask is not taken with a window");
  const std::int64_t side = call.max_len_extend;
  const std::size_t batch = call.seq_lens.values.size();
  const std::size_t entries = mask.values.size();
  constexpr std::int64_t longest_side = 1 << 20;
  const bool square =
      side >= 0 && side < longest_side && entries == batch * static_cast<std::size_t>(side * side);
  if (!square) {
    throw KernelRefusal("tree_mask has " + std::to_string(entries) +
                        " entries, not batch * max_len_extend^2 = " + std::to_string(batch) +
                        " * " + std::to_string(side) + "^2");
  }
  for (const std::int64_t length : call.extend_seq_lens.values) {
    if (length == side) continue;
    throw KernelRefusal("tree_mask needs extend_seq_lens = max_len_extend = " +
                        std::to_string(side) + ", got " + std::to_string(length));
  }
}

void check_lengths(const ExtendCall& call, std::size_t i) {
  const std::string where = "seq_lens[" + std::to_string(i) + "] = ";
  const std::int64_t total = call.seq_lens[i];
  const std::int64_t columns = call.req_to_token.size(1);
  if (total > columns) {
    throw KernelRefusal(where + std::to_string(total) + " exceeds the " + std::to_string(columns) +
                        " columns of req_to_token");
  }
  const std::int64_t fresh = call.extend_seq_lens[i];
  if (fresh < 0 || total < fresh) {
    throw KernelRefusal(where + std::to_string(total) + " with " + std::to_string(fresh) +
                        " new tokens: prefix len < 0");
  }
  const std::int64_t row = call.req_pool_indices[i];
  if (row >= call.req_to_token.size(0)) {
    throw KernelRefusal("req_pool_indices[" + std::to_string(i) + "] = " + std::to_string(row) +
                        " is outside the " + std::to_string(call.req_to_token.size(0)) +
                        " rows of req_to_token");
  }
}

}  // namespace

std::int64_t extend_block(std::int64_t max_len_extend) {
  if (max_len_extend <= 256) return 32;
  if (max_len_extend <= 1024) return 128;
  return max_len_extend <= 4096 ? 256 : 512;
}

void check_extend_arguments(const ExtendCall& call) {
  const std::size_t batch = call.seq_lens.values.size();
  require_batch("req_pool_indices", call.req_pool_indices, batch);
  require_batch("extend_seq_lens", call.extend_seq_lens, batch);
  require_batch("extend_start_loc", call.extend_start_loc, batch);
  if (call.encoder_lens) require_batch("encoder_lens", *call.encoder_lens, batch);
  if (!call.is_cross_attn && !(call.k_extend && call.v_extend)) {
    throw KernelRefusal("k_extend and v_extend are required outside cross attention");
  }
  if (call.tree_mask) check_tree_mask(call, *call.tree_mask);
  for (std::size_t i = 0; i < batch; ++i) check_lengths(call, i);
}

}  // namespace attest
