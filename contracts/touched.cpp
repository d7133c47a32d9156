#include "contracts/signatures/pool_view.hpp"
#include "contracts/touched_parts.hpp"

// Calls that find their keys through a table with a row for every request.

namespace attest {
namespace touching {
namespace {

/// A call that finds its keys through a row of page ids for every request.
struct TableCall {
  const TensorMeta &q, &k, &v, &out;  ///< k and v as (pages, page size, heads, dim)
  const IntArray &offsets, &lengths, &table;
  std::int64_t window = 0;  ///< visible keys; <= 0 = all
  bool row_is_request = false;
};

std::vector<AddressInterval> through_table(const TableCall& c) {
  Pools pools{Touched(c.k), Touched(c.v), c.k, c.v};
  Touched table(c.table.meta);
  Indices rows{farthest, -1};
  const std::int64_t page_size = std::max<std::int64_t>(c.k.size(1), 1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.lengths.values.size()); ++i) {
    const std::int64_t first = c.row_is_request ? i : entry(c.offsets, i);
    const std::int64_t count = c.row_is_request ? 1 : entry(c.offsets, i + 1) - first;
    if (count <= 0) continue;
    rows = {std::min(rows.first, first), std::max(rows.last, first + count - 1)};
    const std::int64_t length = entry(c.lengths, i);
    const Walk walk{first_seen(length, count, c.window), length};
    if (walk.first >= walk.length) continue;
    table.box({{i, i}, {walk.first / page_size, (length - 1) / page_size}});
    pools.pages(c.table, times(i, c.table.size(1)), walk, page_size);
  }
  rows.last = std::min({rows.last, c.q.size(0) - 1, c.out.size(0) - 1});
  std::vector<AddressInterval> list;
  add_rows(list, "q", c.q, rows);
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  add_rows(list, "out", c.out, rows);
  table.add_to(list, "block table");
  return list;
}

/// Cells [from, to) of row `row` of a token table, and the slots they name.
void walk_cells(const IntArray& tokens, std::int64_t row, const Indices& columns, Touched& table,
                Pools& pools) {
  table.box({{row, row}, columns});
  const std::int64_t start = times(row, tokens.size(1));
  pools.slots(tokens, {plus(start, columns.first), plus(start, columns.last)});
}

}  // namespace

std::vector<AddressInterval> touched(const UnifiedCall& c) {
  std::vector<AddressInterval> list =
      through_table({c.q, c.k, c.v, c.out, c.cu_seqlens_q, c.seqused_k, c.block_table,
                     c.window_size[0] + 1, c.max_seqlen_q == 1});
  if (c.launch && c.launch->kv_splits > 1) {
    const std::int64_t heads = times(c.out.size(0), c.out.size(1));
    const std::int64_t parts = times(heads, c.launch->kv_splits);
    list.push_back({"split workspace", 4, 0, times(parts, c.out.size(2))});
  }
  return list;
}

std::vector<AddressInterval> touched(const VllmCpuCall& c) {
  const TensorMeta k = swap_heads_and_tokens(c.key_cache);
  const TensorMeta v = swap_heads_and_tokens(c.value_cache);
  return through_table(
      {c.query, k, v, c.output, c.query_start_loc, c.seq_lens, c.block_table, c.sliding_window});
}

std::vector<AddressInterval> touched(const ExtendCall& c) {
  Pools pools{Touched(c.k_buffer), Touched(c.v_buffer), c.k_buffer, c.v_buffer};
  Touched table(c.req_to_token.meta);
  Indices rows{farthest, -1};
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.seq_lens.values.size()); ++i) {
    const std::int64_t count = entry(c.extend_seq_lens, i);
    const std::int64_t first = entry(c.extend_start_loc, i);
    if (count <= 0) continue;
    rows = {std::min(rows.first, first), std::max(rows.last, first + count - 1)};
    const std::int64_t length = entry(c.seq_lens, i);
    const std::int64_t encoder = c.encoder_lens ? entry(*c.encoder_lens, i) : 0;
    Indices columns{encoder + first_seen(length, count, c.sliding_window_size),
                    encoder + length - count - 1};
    if (c.is_cross_attn) columns = {0, (c.encoder_lens ? encoder : length) - 1};
    walk_cells(c.req_to_token, entry(c.req_pool_indices, i), columns, table, pools);
  }
  rows.last = std::min({rows.last, c.q_extend.size(0) - 1, c.o_extend.size(0) - 1});
  std::vector<AddressInterval> list;
  add_rows(list, "q", c.q_extend, rows);
  if (c.k_extend && c.v_extend) {
    add_rows(list, "new k", *c.k_extend, rows);
    add_rows(list, "new v", *c.v_extend, rows);
  }
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  add_rows(list, "out", c.o_extend, rows);
  table.add_to(list, "block table");
  return list;
}

std::vector<AddressInterval> touched(const DecodeCall& c) {
  Pools pools{Touched(c.k_buffer), Touched(c.v_buffer), c.k_buffer, c.v_buffer};
  Touched table(c.req_to_token.meta);
  const auto batch = static_cast<std::int64_t>(c.seq_lens.values.size());
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t length = entry(c.seq_lens, i);
    const std::int64_t encoder = c.encoder_lens ? entry(*c.encoder_lens, i) : 0;
    Indices columns{encoder + first_seen(length, 1, c.sliding_window_size), encoder + length - 1};
    if (c.is_cross_attn) columns = {0, (c.encoder_lens ? encoder : length) - 1};
    walk_cells(c.req_to_token, entry(c.req_pool_indices, i), columns, table, pools);
  }
  if (c.key && c.value) {
    for (const std::int64_t slot : c.loc.values) pools.slot(std::clamp(slot, -farthest, farthest));
  }
  std::vector<AddressInterval> list;
  const Indices rows{0, std::min({batch, c.query.size(0), c.output.size(0)}) - 1};
  add_rows(list, "q", c.query, rows);
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  add_rows(list, "out", c.output, rows);
  table.add_to(list, "block table");
  add_whole(list, "split workspace", c.attn_logits);
  return list;
}

}  // namespace touching

std::vector<AddressInterval> address_intervals(const Call& call) {
  return std::visit([](const auto& c) { return touching::touched(c); }, call);
}

}  // namespace attest
