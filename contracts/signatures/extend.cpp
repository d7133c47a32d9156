#include <algorithm>
#include <utility>

#include "contracts/signatures.hpp"
#include "contracts/signatures/draft_mask.hpp"
#include "contracts/signatures/refusals.hpp"
#include "contracts/signatures/req_to_token.hpp"

namespace attest {
namespace {

bool has_trees(const Problem& p) {
  return !std::all_of(p.requests.begin(), p.requests.end(), is_chain);
}

/// Verification on a server that drafts trees passes a mask even where every tree is a chain.
bool needs_mask(const Problem& p) {
  return has_trees(p) || (p.mode == Mode::target_verify && p.topk != 1);
}

std::optional<std::string> mask_unsupported(const Problem& p) {
  if (p.model.window) return "extend takes no window together with a tree mask";
  if (p.model.cross_attention) return "extend takes no tree mask in cross attention";
  for (const Request& r : p.requests) {
    if (r.new_tokens == p.requests.front().new_tokens) continue;
    return "extend's tree mask holds one verify length for the whole batch, not both " +
           std::to_string(p.requests.front().new_tokens) + " and " + std::to_string(r.new_tokens);
  }
  return std::nullopt;
}

std::optional<std::string> unsupported(const Problem& p, const SlotMap& slots) {
  const bool served = p.mode == Mode::extend || p.mode == Mode::mixed ||
                      p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2;
  if (!served) return "extend does not serve " + std::string(name(p.mode));
  if (auto reason = cpu_unsupported(p, slots)) return reason;
  if (p.model.head_dim % 32 != 0 || p.model.v_head_dim % 32 != 0) {
    return "extend needs head sizes that are multiples of 32, not " +
           std::to_string(p.model.head_dim) + " and " + std::to_string(p.model.v_head_dim);
  }
  return needs_mask(p) ? mask_unsupported(p) : std::nullopt;
}

/// QLEN_ONLY: one square per request, mask[t][u] = token t sees new token u.
IntArray tree_mask(const Problem& p) {
  const std::int64_t q = p.max_new_tokens();
  const auto side = static_cast<std::size_t>(q);
  std::vector<std::int64_t> values(p.requests.size() * side * side, 0);
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (std::size_t t = 0; t < side; ++t) {
      const auto row = std::span(values).subspan((i * side + t) * side, side);
      show_ancestors(p.requests[i], static_cast<std::int64_t>(t), row);
    }
  }
  return int_array(Dtype::boolean, std::move(values));
}

struct ExtendLens {
  std::vector<std::int64_t> total, fresh, start;
};

ExtendLens lens_of(const Problem& p) {
  ExtendLens lens;
  std::int64_t row = 0;
  for (const Request& r : p.requests) {
    lens.total.push_back(r.kv_len());
    lens.fresh.push_back(r.new_tokens);
    lens.start.push_back(row);
    row += r.new_tokens;
  }
  return lens;
}

}  // namespace

Lowered<ExtendCall> lower_extend(const Problem& problem, const SlotMap& slots) {
  if (auto reason = unsupported(problem, slots)) return Unsupported{*reason};
  const Model& m = problem.model;
  const std::int64_t rows = problem.total_new_tokens();
  const Dtype index = table_dtype(problem);
  TokenTable table = pooled_table(problem, slots);
  ExtendLens lens = lens_of(problem);
  ExtendCall call;
  call.q_extend = contiguous(m.q_dtype, {rows, m.num_q_heads, m.head_dim});
  if (!m.cross_attention) {
    call.k_extend = contiguous(m.kv_dtype, {rows, m.num_kv_heads, m.head_dim});
    call.v_extend = contiguous(m.kv_dtype, {rows, m.num_kv_heads, m.v_head_dim});
  }
  call.o_extend = contiguous(m.out_dtype, {rows, m.num_q_heads, m.v_head_dim});
  call.k_buffer = k_buffer_of(problem);
  call.v_buffer = v_buffer_of(problem);
  call.req_to_token = std::move(table.req_to_token);
  call.req_pool_indices = std::move(table.req_pool_indices);
  call.seq_lens = int_array(Dtype::int64, std::move(lens.total));
  call.extend_seq_lens = int_array(index, std::move(lens.fresh));
  call.extend_start_loc = int_array(index, std::move(lens.start));
  call.max_len_extend = problem.max_new_tokens();
  call.sm_scale = m.softmax_scale;
  call.logit_cap = m.softcap;
  call.is_cross_attn = m.cross_attention;
  call.sliding_window_size = m.window.value_or(0);
  call.encoder_lens = encoder_lens_of(problem);
  if (m.sinks) call.sinks = contiguous(m.q_dtype, {m.num_q_heads});
  if (needs_mask(problem)) call.tree_mask = tree_mask(problem);
  return call;
}

}  // namespace attest
