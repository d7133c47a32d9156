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

namespace attest {
namespace {

std::optional<std::string> refuses_model(const Model& m) {
  if (m.mla) return "paged_ragged takes separate K and V pools, an MLA layer has one";
  if (m.window) return "paged_ragged has no window";
  if (m.sinks) return "paged_ragged has no sinks";
  if (is_fp8(m.q_dtype)) return "paged_ragged takes fp16 or bf16 q, the layer has fp8";
  if (m.kv_dtype != m.q_dtype && !is_fp8(m.kv_dtype)) {
    return "paged_ragged takes a cache of q's type or fp8, the layer has " +
           std::string(name(m.q_dtype)) + " q over " + std::string(name(m.kv_dtype)) + " keys";
  }
  if (m.out_dtype != m.q_dtype) return "paged_ragged writes q's type";
  if (m.head_dim != m.v_head_dim) return "paged_ragged takes one head size for K and V";
  if (m.head_dim < 64 || m.head_dim % 16 != 0) {
    return "paged_ragged takes head sizes from 64 on in steps of 16, the layer has " +
           std::to_string(m.head_dim);
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  if (auto reason = refuses_model(p.model)) return reason;
  if (auto reason = refuses_cross_attention(p, "paged_ragged")) return reason;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    if (p.requests[i].new_tokens == 1) continue;
    return "paged_ragged takes one new token a request, request " + std::to_string(i) + " has " +
           std::to_string(p.requests[i].new_tokens);
  }
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (!flat(p, p.pool.k, p.model.head_dim) || !flat(p, p.pool.v, p.model.v_head_dim)) {
    return "paged_ragged sees the pool as one token a page, this one has gaps between its pages";
  }
  return refuses_wide_slot_lists(p);
}

void add_features(const Model& m, PagedRaggedCall& call) {
  call.scale = m.softmax_scale;
  call.logits_soft_cap = m.softcap;
  if (is_fp8(m.kv_dtype)) call.kv_cache_dtype = "fp8";
  if (m.k_descale) call.k_scale = contiguous(Dtype::f32, {1});
  if (m.v_descale) call.v_scale = contiguous(Dtype::f32, {1});
}

}  // namespace

std::int64_t paged_ragged_workspace(std::int64_t rows, std::int64_t heads, std::int64_t partitions,
                                    std::int64_t head_dim, std::int64_t element_bytes) {
  // Sums and maxima in f32, then a partial result: rows * heads * partitions of each.
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(rows, heads, &bytes) ||
                        __builtin_mul_overflow(bytes, partitions, &bytes) ||
                        __builtin_mul_overflow(bytes, 8 + head_dim * element_bytes, &bytes);
  return overflow ? largest_count : bytes;
}

Lowered<PagedRaggedCall> lower_paged_ragged(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  const auto batch = static_cast<std::int64_t>(problem.requests.size());
  PagedRaggedCall call;
  call.query = contiguous(m.q_dtype, {batch, m.num_q_heads, m.head_dim});
  call.out = contiguous(m.out_dtype, {batch, m.num_q_heads, m.v_head_dim});
  call.key_cache = slot_view(problem, problem.pool.k, m.head_dim);
  call.value_cache = slot_view(problem, problem.pool.v, m.v_head_dim);
  list_every_slot(problem, slots, call.kv_indptr, call.kv_page_indices, call.kv_last_page_lens);
  // A graph is captured for the longest context.
  const std::int64_t longest = std::max(problem.max_kv_len(), problem.context_len);
  call.max_num_partitions = (longest + call.partition_size - 1) / call.partition_size;
  call.workspace_buffer = contiguous(
      Dtype::uint8,
      {paged_ragged_workspace(batch, m.num_q_heads, call.max_num_partitions, m.v_head_dim, 4)});
  add_features(m, call);
  return call;
}

Attended read(const PagedRaggedCall& call, const Problem& problem, const SlotMap& slots) {
  QueryRows rows(call.query, problem);
  SlotContents contents(problem, slots);
  const Model& m = problem.model;
  const bool same_pool = call.kv_cache_layout == "NHD" &&
                         call.key_cache.size(1) == call.block_size &&
                         addresses_pool(call.key_cache, problem, problem.pool.k, m.head_dim) &&
                         addresses_pool(call.value_cache, problem, problem.pool.v, m.v_head_dim);
  const PageList pages{call.kv_indptr, call.kv_page_indices, &call.kv_last_page_lens,
                       call.block_size, std::min(call.key_cache.size(0), call.value_cache.size(0))};
  // Partitions past the last one are never computed.
  std::int64_t most = 0;
  if (__builtin_mul_overflow(std::max<std::int64_t>(0, call.max_num_partitions),
                             std::max<std::int64_t>(0, call.partition_size), &most)) {
    most = largest_count;
  }
  for (std::size_t i = 0; call.kv_indptr.recorded && i + 1 < call.kv_indptr.values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    if (row >= rows.count()) break;
    const std::int64_t length = std::min(pages.length(i), saturated(most));
    RowKeys keys(contents, i, 0);
    pages.read(i, length, same_pool, keys);
    rows.cover(row, keys.clipped(0, length));
  }
  return {.scale = call.scale,
          .softcap = std::max(0.0, call.logits_soft_cap),
          .sinks = false,
          .num_q_heads = call.query.size(1),
          .num_kv_heads = distinct_heads(call.key_cache, 2),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
