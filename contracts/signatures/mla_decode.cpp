#include <algorithm>
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

std::optional<std::string> refuses_model(const Model& m) {
  if (!m.mla) return "mla_decode reads one latent pool, the layer has separate K and V";
  if (m.window) return "mla_decode has no window";
  if (m.sinks) return "mla_decode has no sinks";
  if (m.softcap > 0) return "mla_decode has no softcap: its logit_cap must be <= 0";
  if (m.k_descale != m.v_descale) {
    return "mla_decode has one kv_scale, K and V are descaled differently";
  }
  if (is_fp8(m.q_dtype) && !(m.q_descale && m.k_descale)) {
    return "mla_decode needs q_scale and kv_scale with fp8 q";
  }
  return std::nullopt;
}

std::optional<std::string> refuses_lengths(const Problem& p) {
  if (p.mode == Mode::extend || p.mode == Mode::mixed) {
    return "mla_decode serves decode and drafts, an MLA prompt goes to the prefill kernels";
  }
  const std::int64_t length = p.requests.front().new_tokens;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    if (p.requests[i].new_tokens == length) continue;
    return "mla_decode takes one draft length for the batch, request 0 has " +
           std::to_string(length) + " new tokens, request " + std::to_string(i) + " has " +
           std::to_string(p.requests[i].new_tokens);
  }
  if (length == 0) return "no request has a new token";
  const bool drafts = p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2;
  if (drafts && p.num_draft_tokens && *p.num_draft_tokens != length) {
    return "mla_decode is set up for num_draft_tokens = " + std::to_string(*p.num_draft_tokens) +
           ", the requests have " + std::to_string(length) + " new tokens";
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  if (auto reason = refuses_model(p.model)) return reason;
  if (auto reason = refuses_cross_attention(p, "mla_decode")) return reason;
  if (auto reason = refuses_draft_tree(p, "mla_decode")) return reason;
  if (auto reason = refuses_lengths(p)) return reason;
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (!flat(p, p.pool.k, p.model.head_dim)) {
    return "mla_decode sees the pool as one token a page, this one has gaps between its pages";
  }
  return refuses_wide_slot_lists(p);
}

PageList pages_of(const MlaDecodeCall& call) {
  return {call.kv_indptr, call.kv_indices, &call.kv_last_page_lens, call.page_size,
          call.kv_buffer.size(0)};
}

/// The kernel's q rows are i * max_seqlen_q + r: the one length is part of its address arithmetic.
void read_request(const MlaDecodeCall& call, std::size_t i, bool pool_is_the_problems,
                  SlotContents& contents, QueryRows& rows) {
  const std::int64_t length = call.max_seqlen_q;
  std::int64_t first = 0;
  if (length < 1 || __builtin_mul_overflow(static_cast<std::int64_t>(i), length, &first)) return;
  const std::int64_t stored = std::min(rows.count(), call.qo_indptr.values.back());
  if (first >= stored) return;
  const std::int64_t last = first + std::min(length, stored - first);
  const PageList pages = pages_of(call);
  const std::int64_t position = pages.length(i) - saturated(length);
  const std::int64_t end = position + (last - first);
  RowKeys keys(contents, i, 0);
  const bool whole_pages = call.page_size == call.kv_buffer.size(1);
  pages.read(i, end, pool_is_the_problems && whole_pages, keys);
  for (std::int64_t r = first; r < last; ++r) {
    rows.cover(r, keys.clipped(0, position + (r - first) + 1));
  }
}

}  // namespace

Lowered<MlaDecodeCall> lower_mla_decode(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  const std::int64_t length = problem.requests.front().new_tokens;
  const auto batch = static_cast<std::int64_t>(problem.requests.size());
  MlaDecodeCall call;
  call.q = contiguous(m.q_dtype, {batch * length, m.num_q_heads, m.head_dim});
  call.kv_buffer = slot_view(problem, problem.pool.k, m.head_dim);
  call.o = contiguous(m.out_dtype, {batch * length, m.num_q_heads, m.v_head_dim});
  std::vector<std::int64_t> offsets;
  for (std::int64_t i = 0; i <= batch; ++i) offsets.push_back(i * length);
  call.qo_indptr = int_array(Dtype::int32, std::move(offsets));
  list_every_slot(problem, slots, call.kv_indptr, call.kv_indices, call.kv_last_page_lens);
  call.max_seqlen_q = length;
  call.page_size = 1;
  call.sm_scale = m.softmax_scale;
  const TensorMeta one = contiguous(Dtype::f32, {1});
  if (m.q_descale) call.q_scale = one;
  if (m.k_descale) call.kv_scale = one;
  return call;
}

Attended read(const MlaDecodeCall& call, const Problem& problem, const SlotMap& slots) {
  QueryRows rows(call.q, problem);
  SlotContents contents(problem, slots);
  const bool same_pool =
      addresses_pool(call.kv_buffer, problem, problem.pool.k, problem.model.head_dim);
  const bool recorded = call.qo_indptr.recorded && call.kv_indptr.recorded;
  const std::size_t offsets = std::min(call.qo_indptr.values.size(), call.kv_indptr.values.size());
  for (std::size_t i = 0; recorded && i + 1 < offsets && !rows.exhausted(); ++i) {
    read_request(call, i, same_pool, contents, rows);
  }
  return {.scale = call.sm_scale,
          .softcap = std::max(0.0, call.logit_cap),
          .sinks = false,
          .num_q_heads = call.q.size(1),
          .num_kv_heads = distinct_heads(call.kv_buffer, 2),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
