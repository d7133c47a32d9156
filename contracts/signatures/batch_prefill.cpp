#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "contracts/signatures/page_list.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/refusals.hpp"
#include "contracts/signatures/slot_contents.hpp"

namespace attest {
namespace {

// The kernel loads a tile of entries past the last request's last key before it masks.
constexpr std::size_t loaded_past_the_end = 128;

std::optional<std::string> refuses_model(const Model& m) {
  if (m.mla) return "batch_prefill takes separate K and V pools, an MLA layer has one";
  if (m.q_dtype != m.kv_dtype) {
    return "batch_prefill takes one type for q, k and v, the layer has " +
           std::string(name(m.q_dtype)) + " q over " + std::string(name(m.kv_dtype)) + " keys";
  }
  if (is_fp8(m.q_dtype) && m.out_dtype != Dtype::bf16) {
    return "batch_prefill returns bf16 for fp8 q, the layer wants " +
           std::string(name(m.out_dtype));
  }
  if (!is_fp8(m.q_dtype) && m.out_dtype != m.q_dtype) {
    return "batch_prefill returns q's type, the layer wants " + std::string(name(m.out_dtype));
  }
  if (m.q_descale.has_value() != m.k_descale.has_value() ||
      m.k_descale.has_value() != m.v_descale.has_value()) {
    return "batch_prefill takes q_descale, k_descale and v_descale together or not at all";
  }
  const std::int64_t step = 16 / static_cast<std::int64_t>(size_bytes(m.q_dtype));
  for (const std::int64_t dim : {m.head_dim, m.v_head_dim}) {
    if (dim <= 256 && dim % step == 0) continue;
    return "batch_prefill takes head sizes up to 256 in multiples of 16 bytes, the layer has " +
           std::to_string(dim);
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  if (auto reason = refuses_model(p.model)) return reason;
  if (auto reason = refuses_cross_attention(p, "batch_prefill")) return reason;
  if (auto reason = refuses_draft_tree(p, "batch_prefill")) return reason;
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (p.max_new_tokens() == 0) return "no request has a new token";
  if (!flat(p, p.pool.k, p.model.head_dim) || !flat(p, p.pool.v, p.model.v_head_dim)) {
    return "batch_prefill sees the pool as one token a page, this one has gaps between its pages";
  }
  return refuses_wide_slot_lists(p);
}

/// An evicted token names the request's last slot: its bytes are loaded with a tile, and masked.
void add_keys(const Problem& p, const SlotMap& slots, BatchPrefillCall& call) {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const std::int64_t length = p.requests[i].kv_len();
    const std::int64_t valid =
        length > 0 ? std::max<std::int64_t>(0, slots.slot(i, length - 1)) : 0;
    for (std::int64_t t = 0; t < length; ++t) {
      const std::int64_t slot = slots.slot(i, t);
      indices.push_back(slot < 0 ? valid : slot);
    }
    offsets.push_back(static_cast<std::int64_t>(indices.size()));
  }
  const std::int64_t filler = indices.empty() ? 0 : indices.front();
  indices.insert(indices.end(), loaded_past_the_end, filler);
  call.kv_indptr = int_array(Dtype::int32, std::move(offsets));
  call.kv_page_indices = int_array(Dtype::int32, std::move(indices));
}

void add_features(const Model& m, BatchPrefillCall& call) {
  call.softmax_scale = m.softmax_scale;
  call.logits_soft_cap = m.softcap;
  call.causal = true;
  if (m.window) call.window_size = {*m.window - 1, -1};
  if (m.sinks) call.sink_ptr = contiguous(Dtype::f32, {m.num_q_heads});
  if (!m.q_descale) return;
  call.q_descale = call.k_descale = call.v_descale = contiguous(Dtype::f32, {1});
}

void read_request(const BatchPrefillCall& call, std::size_t i, bool pool_is_the_problems,
                  SlotContents& contents, QueryRows& rows) {
  const std::int64_t start = saturated(call.cu_seqlens_q.values[i]);
  const std::int64_t count = saturated(call.cu_seqlens_q.values[i + 1]) - start;
  const PageList pages{call.kv_indptr, call.kv_page_indices, nullptr, 1,
                       std::min(call.k.size(0), call.v.size(0))};
  const std::int64_t length = pages.length(i);
  // Rows past max_seqlen_q are computed up to the end of a tile: nothing to rely on.
  const std::int64_t computed = std::min(count, saturated(call.max_seqlen_q));
  const std::int64_t first = std::max<std::int64_t>(0, start);
  const std::int64_t last = std::min(rows.count(), start + computed);
  if (first >= last) return;
  // The host code turns a window off that max_seqlen_k cannot reach, and the mask for one row.
  const std::int64_t left = call.window_size[0];
  const bool windowed = left >= 0 && left < call.max_seqlen_k;
  const bool causal = call.causal && call.max_seqlen_q != 1;
  const auto position = [&](std::int64_t r) { return length - count + (r - start); };
  const auto first_key = [&](std::int64_t r) {
    return windowed ? std::max<std::int64_t>(0, position(r) - saturated(left)) : 0;
  };
  const auto end_of = [&](std::int64_t r) { return causal ? position(r) + 1 : length; };
  RowKeys keys(contents, i, first_key(first));
  pages.read(i, end_of(last - 1), pool_is_the_problems, keys);
  for (std::int64_t r = first; r < last; ++r) {
    rows.cover(r, keys.clipped(first_key(r), end_of(r)));
  }
}

}  // namespace

Lowered<BatchPrefillCall> lower_batch_prefill(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  BatchPrefillCall call;
  call.q = contiguous(m.q_dtype, {problem.total_new_tokens(), m.num_q_heads, m.head_dim});
  call.k = without_pages(slot_view(problem, problem.pool.k, m.head_dim));
  call.v = without_pages(slot_view(problem, problem.pool.v, m.v_head_dim));
  std::vector<std::int64_t> offsets{0};
  for (const Request& r : problem.requests) offsets.push_back(offsets.back() + r.new_tokens);
  call.cu_seqlens_q = int_array(Dtype::int32, std::move(offsets));
  add_keys(problem, slots, call);
  call.max_seqlen_q = problem.max_new_tokens();
  // A graph is captured for the longest context: a value frozen below it would lose the window.
  const std::int64_t longest = problem.max_kv_len();
  call.max_seqlen_k =
      problem.path == Path::eager ? longest : std::max(longest, problem.context_len);
  add_features(m, call);
  return call;
}

Attended read(const BatchPrefillCall& call, const Problem& problem, const SlotMap& slots) {
  QueryRows rows(call.q, problem);
  SlotContents contents(problem, slots);
  const Model& m = problem.model;
  const bool same_pool = addresses_pool(with_pages(call.k), problem, problem.pool.k, m.head_dim) &&
                         addresses_pool(with_pages(call.v), problem, problem.pool.v, m.v_head_dim);
  const bool launched = call.cu_seqlens_q.recorded && call.kv_indptr.recorded &&
                        call.max_seqlen_q > 0 && call.max_seqlen_k > 0;
  const std::size_t offsets =
      std::min(call.cu_seqlens_q.values.size(), call.kv_indptr.values.size());
  for (std::size_t i = 0; launched && i + 1 < offsets && !rows.exhausted(); ++i) {
    read_request(call, i, same_pool, contents, rows);
  }
  const double standard =
      1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, call.q.size(2))));
  return {.scale = call.softmax_scale.value_or(standard),
          .softcap = std::max(0.0, call.logits_soft_cap),
          .sinks = call.sink_ptr.has_value(),
          .num_q_heads = call.q.size(1),
          .num_kv_heads = distinct_heads(call.k, 1),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
