#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/refusals.hpp"
#include "contracts/signatures/slot_contents.hpp"
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

IntArray offsets_of(const Problem& p) {
  std::vector<std::int64_t> offsets{0};
  for (const Request& r : p.requests) offsets.push_back(offsets.back() + r.new_tokens);
  return int_array(Dtype::int32, std::move(offsets));
}

IntArray lengths_of(const Problem& p) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(p.requests.size());
  for (const Request& r : p.requests) lengths.push_back(r.kv_len());
  return int_array(Dtype::int64, std::move(lengths));
}

/// Tokens a table row must hold: a whole context and the drafts past it, up to the end of a tile.
std::int64_t table_tokens(const Problem& p) {
  const bool drafts = p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2 ||
                      p.mode == Mode::draft_decode;
  const std::int64_t slack = drafts ? p.num_draft_tokens.value_or(p.max_new_tokens()) : 0;
  const std::int64_t tokens = std::max({p.context_len + slack, p.max_kv_len(), std::int64_t{1}});
  return ceil_div(tokens, widest_tile) * widest_tile;
}

IntArray table_of(const Problem& p, const SlotMap& slots) {
  const std::int64_t width = ceil_div(table_tokens(p), p.pool.page_size);
  std::vector<std::int64_t> cells;
  cells.reserve(p.requests.size() * static_cast<std::size_t>(width));
  for (const std::vector<std::int64_t>& pages : slots.pages) {
    // Evicted and unused cells name a page of the request itself: a tile may still load them, and
    // those bytes are finite.
    const auto last =
        std::find_if(pages.rbegin(), pages.rend(), [](std::int64_t page) { return page >= 0; });
    const std::int64_t valid = last == pages.rend() ? 0 : *last;
    for (const std::int64_t page : pages) cells.push_back(page < 0 ? valid : page);
    cells.resize(cells.size() + static_cast<std::size_t>(width) - pages.size(), valid);
  }
  return int_matrix(Dtype::int32, static_cast<std::int64_t>(p.requests.size()), width,
                    std::move(cells));
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

/// The rows and key positions one batch row of the call is about.
struct Span {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t position = 0;  ///< of the first row
};

std::optional<Span> span_of(const UnifiedCall& call, std::size_t i) {
  const std::int64_t length = saturated(call.seqused_k.values[i]);
  if (call.max_seqlen_q == 1) return Span{static_cast<std::int64_t>(i), 1, length - 1};
  if (i + 1 >= call.cu_seqlens_q.values.size()) return std::nullopt;
  const std::int64_t first = saturated(call.cu_seqlens_q.values[i]);
  const std::int64_t rows = saturated(call.cu_seqlens_q.values[i + 1]) - first;
  return Span{first, rows, length - rows};
}

/// Reads tokens up to `last` of batch row i through the block table, as the kernel's index
/// arithmetic does: a column past the row's end lands in the next row.
void read_pages(const UnifiedCall& call, std::size_t i, std::int64_t last, RowKeys& keys) {
  const IntArray& table = call.block_table;
  const std::int64_t page_size = call.k.size(1);
  const std::int64_t num_pages = std::min(call.k.size(0), call.v.size(0));
  const std::int64_t width = table.size(1);
  const bool rows_touch = table.meta.stride(0) == width;
  std::int64_t row_start = 0;
  const bool usable = table.recorded && page_size >= 1 && width >= 1 &&
                      page_size <= largest_count && width <= largest_count &&
                      !__builtin_mul_overflow(static_cast<std::int64_t>(i), width, &row_start);
  const auto cells = static_cast<std::int64_t>(table.values.size());
  while (usable && keys.next_token() < last) {
    const std::int64_t column = keys.next_token() / page_size;
    // A length that is nonsense is not followed through the whole table.
    const std::int64_t columns = rows_touch ? 2 * width : width;
    if (column >= columns || column >= cells - row_start) break;
    const std::int64_t page = table.values[static_cast<std::size_t>(row_start + column)];
    keys.read_page(page, num_pages, page_size, last);
  }
  keys.read_outside(last - keys.next_token());
}

void read_request(const UnifiedCall& call, std::size_t i, bool pool_is_the_problems,
                  SlotContents& contents, QueryRows& rows) {
  const std::optional<Span> span = span_of(call, i);
  if (!span) return;
  const std::int64_t first = std::max<std::int64_t>(0, span->first_row);
  const std::int64_t last = std::min(rows.count(), span->first_row + span->rows);
  if (first >= last) return;
  // window_size[0] is the largest distance; the kernel reads no other entry.
  const std::int64_t window =
      call.window_size[0] >= 0 ? saturated(call.window_size[0]) + 1 : 4 * largest_count;
  const auto position = [&](std::int64_t r) { return span->position + (r - span->first_row); };
  const auto first_key = [&](std::int64_t r) {
    return std::max<std::int64_t>(0, position(r) - window + 1);
  };
  const std::int64_t end = position(last - 1) + 1;
  RowKeys keys(contents, i, first_key(first));
  if (pool_is_the_problems) read_pages(call, i, end, keys);
  keys.read_outside(end - keys.next_token());
  for (std::int64_t r = first; r < last; ++r) {
    rows.cover(r, keys.clipped(first_key(r), position(r) + 1));
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
  call.cu_seqlens_q = offsets_of(problem);
  call.seqused_k = lengths_of(problem);
  call.block_table = table_of(problem, slots);
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
  const bool same_pool = addresses_pool(call.k, problem, problem.pool.k, m.head_dim) &&
                         addresses_pool(call.v, problem, problem.pool.v, m.v_head_dim);
  const bool recorded = call.seqused_k.recorded && call.cu_seqlens_q.recorded;
  for (std::size_t i = 0; recorded && i < call.seqused_k.values.size() && !rows.exhausted(); ++i) {
    read_request(call, i, same_pool, contents, rows);
  }
  return {.scale = call.softmax_scale,
          .softcap = std::max(0.0, call.softcap),
          .sinks = call.sinks.has_value(),
          .num_q_heads = call.q.size(1),
          .num_kv_heads = distinct_heads(call.k, 2),
          .rows = std::move(rows).take(problem)};
}

}  // namespace attest
