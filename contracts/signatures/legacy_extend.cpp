#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "contracts/signatures/draft_mask.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  const bool served = p.mode == Mode::extend || p.mode == Mode::mixed ||
                      p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2;
  if (!served) return "legacy_extend does not serve " + std::string(name(p.mode));
  const Model& m = p.model;
  if (m.mla) return "legacy_extend takes separate K and V pools, an MLA layer has one";
  if (is_fp8(m.q_dtype)) return "legacy_extend takes q of 16 bits or more, the layer has fp8";
  if (m.kv_dtype != m.q_dtype) {
    // k_scale and v_scale would have to reach the prefix and not the new tokens.
    return "legacy_extend takes a cache of q's type, the layer has " +
           std::string(name(m.q_dtype)) + " q over " + std::string(name(m.kv_dtype)) + " keys";
  }
  if (auto reason = refuses_cross_attention(p, "legacy_extend")) return reason;
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (p.max_new_tokens() == 0) return "no request has a new token";
  if (!flat(p, p.pool.k, m.head_dim) || !flat(p, p.pool.v, m.v_head_dim)) {
    return "legacy_extend sees the pool as one token a page, this one has gaps between its pages";
  }
  std::int64_t tokens = 0;
  for (const Request& r : p.requests) tokens += r.kv_len();
  return refuses_wide_ids(tokens, "keys of the batch");
}

/// An evicted token names slot 0: no new token sees it.
void add_keys(const Problem& p, const SlotMap& slots, LegacyExtendCall& call) {
  std::vector<std::int64_t> rows{0};
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (std::int64_t t = 0; t < p.requests[i].committed; ++t) {
      indices.push_back(std::max<std::int64_t>(0, slots.slot(i, t)));
    }
    rows.push_back(rows.back() + p.requests[i].new_tokens);
    offsets.push_back(static_cast<std::int64_t>(indices.size()));
  }
  call.qo_indptr = int_array(Dtype::int32, std::move(rows));
  call.kv_indptr = int_array(Dtype::int32, std::move(offsets));
  call.kv_indices = int_array(Dtype::int64, std::move(indices));
}

/// Per request a row for every new token: its committed keys, all visible, then the new ones.
void add_mask(const Problem& p, LegacyExtendCall& call) {
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> offsets{0};
  for (const Request& r : p.requests) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      values.insert(values.end(), static_cast<std::size_t>(r.committed), 1);
      const std::size_t first = values.size();
      values.insert(values.end(), static_cast<std::size_t>(r.new_tokens), 0);
      show_ancestors(r, t, std::span(values).subspan(first));
    }
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  call.custom_mask = int_array(Dtype::boolean, std::move(values));
  call.mask_indptr = int_array(Dtype::int64, std::move(offsets));
}

}  // namespace

Lowered<LegacyExtendCall> lower_legacy_extend(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  const std::int64_t rows = problem.total_new_tokens();
  LegacyExtendCall call;
  call.q_extend = contiguous(m.q_dtype, {rows, m.num_q_heads, m.head_dim});
  call.k_extend = contiguous(m.kv_dtype, {rows, m.num_kv_heads, m.head_dim});
  call.v_extend = contiguous(m.kv_dtype, {rows, m.num_kv_heads, m.v_head_dim});
  call.o_extend = contiguous(m.out_dtype, {rows, m.num_q_heads, m.v_head_dim});
  call.k_buffer = without_pages(slot_view(problem, problem.pool.k, m.head_dim));
  call.v_buffer = without_pages(slot_view(problem, problem.pool.v, m.v_head_dim));
  add_keys(problem, slots, call);
  // Verification always brings its mask, a chain's too: SGLang's drafters build one.
  const bool trees = !std::all_of(problem.requests.begin(), problem.requests.end(), is_chain);
  if (trees || problem.mode == Mode::target_verify) add_mask(problem, call);
  call.max_len_extend = problem.max_new_tokens();
  call.sm_scale = m.softmax_scale;
  call.logit_cap = m.softcap;
  if (m.window) call.sliding_window_size = *m.window - 1;
  if (m.sinks) call.sinks = contiguous(m.q_dtype, {m.num_q_heads});
  return call;
}

}  // namespace attest
