#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "contracts/signatures/paged_rows.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/refusals.hpp"
#include "contracts/signatures/unified_launch.hpp"

namespace attest {
namespace {

constexpr std::int64_t widest_tile = 64;  // keys; the kernel loads table cells a tile at a time

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::optional<std::string> refusal(const Problem& p, const SlotMap& slots) {
  if (p.model.mla) return "unified takes separate K and V pools, an MLA layer has one";
  if (auto reason = refuses_cross_attention(p, "unified")) return reason;
  if (auto reason = refuses_draft_tree(p, "unified")) return reason;
  if (is_fp8(p.model.q_dtype) && !is_fp8(p.model.kv_dtype)) {
    return "unified casts K and V to q's type, fp8 q would cut " +
           std::string(name(p.model.kv_dtype)) + " keys down";
  }
  if (p.model.k_descale.has_value() != p.model.v_descale.has_value()) {
    return "unified's 2d form applies k_descale and v_descale only together";
  }
  if (slots.page_size != p.pool.page_size) {
    return "the slots do not keep pages of " + std::to_string(p.pool.page_size) + " together";
  }
  if (auto reason = refuses_evicted_keys(p, slots)) return reason;
  if (auto reason = refuses_wide_ids(p.pool.num_pages, "pages")) return reason;
  if (p.max_new_tokens() == 0) return "no request has a new token";
  const bool idle_request = std::any_of(p.requests.begin(), p.requests.end(),
                                        [](const Request& r) { return r.new_tokens == 0; });
  if (p.max_new_tokens() == 1 && idle_request) {
    return "with max_seqlen_q 1 unified takes row i for request i, a request without a new token "
           "would shift the rest";
  }
  return std::nullopt;
}

/// Tokens a table row must hold: a whole context and the drafts past it, up to the end of a tile.
std::int64_t table_tokens(const Problem& p) {
  const bool drafts = p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2 ||
                      p.mode == Mode::draft_decode;
  const std::int64_t slack = drafts ? p.num_draft_tokens.value_or(p.max_new_tokens()) : 0;
  const std::int64_t tokens = std::max({p.context_len + slack, p.max_kv_len(), std::int64_t{1}});
  return ceil_div(tokens, widest_tile) * widest_tile;
}

void add_features(const Model& m, UnifiedCall& call) {
  call.softmax_scale = m.softmax_scale;
  call.softcap = m.softcap;
  if (m.window) call.window_size = {*m.window - 1, 0};
  const TensorMeta one = contiguous(Dtype::f32, {1});
  if (m.q_descale) call.q_descale = one;
  if (m.k_descale) call.k_descale = one;
  if (m.v_descale) call.v_descale = one;
  if (m.sinks) {
    call.sinks = contiguous(is_fp8(m.q_dtype) ? Dtype::f32 : m.q_dtype, {m.num_q_heads});
  }
}

}  // namespace

Lowered<UnifiedCall> lower_unified(const Problem& problem, const SlotMap& slots) {
  if (auto reason = refusal(problem, slots)) return Unsupported{std::move(*reason)};
  const Model& m = problem.model;
  const std::int64_t rows = problem.total_new_tokens();
  UnifiedCall call;
  call.q = contiguous(m.q_dtype, {rows, m.num_q_heads, m.head_dim});
  call.k = paged_view(problem, problem.pool.k, m.head_dim);
  call.v = paged_view(problem, problem.pool.v, m.v_head_dim);
  call.out = contiguous(m.out_dtype, {rows, m.num_q_heads, m.v_head_dim});
  call.cu_seqlens_q = new_token_offsets(problem);
  call.seqused_k = total_lengths(problem, Dtype::int64);
  call.block_table = page_ids(problem, slots, table_tokens(problem));
  call.max_seqlen_q = problem.max_new_tokens();
  // A graph is captured for the longest context; an eager call knows its lengths.
  const std::int64_t page_size = problem.pool.page_size;
  call.max_seqlen_k =
      page_size * (problem.path == Path::eager ? ceil_div(problem.max_kv_len(), page_size)
                                               : call.block_table.size(1));
  add_features(m, call);
  call.launch = unified_launch(call);
  if (!split_tile_fits_page(call)) {
    // The split form's host code asserts on such a page size; the other form takes any.
    call.launch->form = "2d";
    call.launch->kv_splits = 1;
  }
  return call;
}

Attended read(const UnifiedCall& call, const Problem& problem, const SlotMap& slots) {
  QueryRows rows(call.q, problem);
  SlotContents contents(problem, slots);
  const Model& m = problem.model;
  // window_size[0] is the largest distance; the kernel reads no other entry.
  const std::int64_t window = call.window_size[0] >= 0 ? saturated(call.window_size[0]) + 1 : 0;
  PagedRows{.offsets = call.cu_seqlens_q,
            .lengths = call.seqused_k,
            .table = call.block_table,
            .page_size = call.k.size(1),
            .num_pages = std::min(call.k.size(0), call.v.size(0)),
            .window = window,
            .row_is_request = call.max_seqlen_q == 1,
            .usable = addresses_pool(call.k, problem, problem.pool.k, m.head_dim) &&
                      addresses_pool(call.v, problem, problem.pool.v, m.v_head_dim)}
      .read(contents, rows);
  return {.scale = call.softmax_scale,
          .softcap = std::max(0.0, call.softcap),
          .sinks = call.sinks.has_value(),
          .num_q_heads = call.q.size(1),
          .num_kv_heads = distinct_heads(call.k, 2),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
