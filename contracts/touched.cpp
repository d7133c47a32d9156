#include <algorithm>
#include <limits>

#include "contracts/address_interval.hpp"
#include "contracts/capped_product.hpp"
#include "contracts/signatures/pool_view.hpp"

// Which elements of each operand a conforming kernel touches, from the call's metadata alone.

namespace attest {
namespace {

/// Far past every memory, and small enough that eight bytes each stay inside 63 bits.
constexpr std::int64_t farthest = std::int64_t{1} << 58;

std::int64_t times(std::int64_t a, std::int64_t b) { return capped_product(a, b, farthest); }
std::int64_t plus(std::int64_t a, std::int64_t b) { return std::clamp(a + b, -farthest, farthest); }

/// Indices [first, last], both touched.
struct Indices {
  std::int64_t first = 0, last = -1;
};
Indices all_of(std::int64_t count) { return {0, count - 1}; }

/// The hull of what is touched of one operand.
class Touched {
 public:
  explicit Touched(const TensorMeta& meta) : meta_(meta) {}

  /// Every element whose index lies in the box, one range per dimension.
  void box(std::initializer_list<Indices> ranges) {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::size_t d = 0;
    for (const Indices& range : ranges) {
      if (range.last < range.first) return;
      const std::int64_t one = times(range.first, meta_.stride(d));
      const std::int64_t other = times(range.last, meta_.stride(d++));
      low = plus(low, std::min(one, other));
      high = plus(high, std::max(one, other));
    }
    first_ = std::min(first_, low);
    end_ = std::max(end_, plus(high, 1));
  }

  void add_to(std::vector<AddressInterval>& list, const char* operand) const {
    if (first_ >= end_) return;
    list.push_back({operand, static_cast<std::int64_t>(size_bytes(meta_.dtype)), first_, end_});
  }

 private:
  const TensorMeta& meta_;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

std::int64_t entry(const IntArray& array, std::int64_t i, std::int64_t otherwise = 0) {
  const bool there = i >= 0 && i < static_cast<std::int64_t>(array.values.size());
  return there ? std::clamp(array.values[static_cast<std::size_t>(i)], -farthest, farthest)
               : otherwise;
}

void add_rows(std::vector<AddressInterval>& list, const char* operand, const TensorMeta& meta,
              const Indices& rows) {
  Touched touched(meta);
  touched.box({rows, all_of(meta.size(1)), all_of(meta.size(2))});
  touched.add_to(list, operand);
}

void add_whole(std::vector<AddressInterval>& list, const char* operand, const TensorMeta& meta) {
  Touched touched(meta);
  touched.box(
      {all_of(meta.size(0)), all_of(meta.size(1)), all_of(meta.size(2)), all_of(meta.size(3))});
  touched.add_to(list, operand);
}

/// Keys [first, length) of a request and where its row of the table begins.
struct Walk {
  std::int64_t first = 0, length = 0;
};

/// First key that a row of the request sees. `window`: keys a row sees; <= 0 = all.
std::int64_t first_seen(std::int64_t length, std::int64_t rows, std::int64_t window) {
  if (window <= 0) return 0;
  return std::max<std::int64_t>(0, plus(length, -rows) + 1 - window);
}

/// A paged or slot-wise K or V pool and the table that leads to it.
struct Pools {
  Touched k, v;
  const TensorMeta& k_meta;
  const TensorMeta& v_meta;

  void page(std::int64_t page, const Indices& slots) {
    k.box({{page, page}, slots, all_of(k_meta.size(2)), all_of(k_meta.size(3))});
    v.box({{page, page}, slots, all_of(v_meta.size(2)), all_of(v_meta.size(3))});
  }
  void slot(std::int64_t slot) {
    k.box({{slot, slot}, all_of(k_meta.size(1)), all_of(k_meta.size(2))});
    v.box({{slot, slot}, all_of(v_meta.size(1)), all_of(v_meta.size(2))});
  }
  /// Pages of keys `walk`; entries `start + page number` of the table, `page_size` keys each.
  void pages(const IntArray& table, std::int64_t start, const Walk& walk, std::int64_t page_size) {
    const auto cells = static_cast<std::int64_t>(table.values.size());
    for (std::int64_t at = walk.first / page_size; at * page_size < walk.length; ++at) {
      if (start + at < 0 || start + at >= cells) return;
      const std::int64_t from = std::max(walk.first - at * page_size, std::int64_t{0});
      const std::int64_t to = std::min(walk.length - at * page_size, page_size);
      page(entry(table, start + at), {from, to - 1});
    }
  }
};

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

/// Cells [from, to) of row `row` of a token table, and the slots they name.
void walk_cells(const IntArray& tokens, std::int64_t row, const Indices& columns, Touched& table,
                Pools& pools) {
  table.box({{row, row}, columns});
  const std::int64_t width = tokens.size(1);
  const auto cells = static_cast<std::int64_t>(tokens.values.size());
  const std::int64_t start = times(row, width);
  const std::int64_t last = std::min(plus(start, columns.last), cells - 1);
  for (std::int64_t at = std::max<std::int64_t>(plus(start, columns.first), 0); at <= last; ++at) {
    pools.slot(entry(tokens, at));
  }
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

std::vector<AddressInterval> touched(const MlaDecodeCall& c) {
  Pools pools{Touched(c.kv_buffer), Touched(c.kv_buffer), c.kv_buffer, c.kv_buffer};
  Touched table(c.kv_indices.meta);
  const std::int64_t page_size = std::max<std::int64_t>(c.page_size, 1);
  const auto batch = static_cast<std::int64_t>(c.kv_indptr.values.size()) - 1;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t start = entry(c.kv_indptr, i);
    const std::int64_t pages = entry(c.kv_indptr, i + 1) - start;
    if (pages <= 0) continue;
    table.box({{start, start + pages - 1}});
    const std::int64_t last = page_size == 1 ? 1 : entry(c.kv_last_page_lens, i, page_size);
    pools.pages(c.kv_indices, start, {0, plus(times(pages - 1, page_size), last)}, page_size);
  }
  std::vector<AddressInterval> list;
  const std::int64_t covered = c.qo_indptr.values.empty() ? 0 : c.qo_indptr.values.back();
  const Indices rows{0, std::min({covered, c.q.size(0), c.o.size(0)}) - 1};
  add_rows(list, "q", c.q, rows);
  pools.k.add_to(list, "kv");
  add_rows(list, "out", c.o, rows);
  table.add_to(list, "block table");
  return list;
}

std::vector<AddressInterval> touched(const BatchPrefillCall& c) {
  Pools pools{Touched(c.k), Touched(c.v), c.k, c.v};
  Touched table(c.kv_page_indices.meta);
  Indices rows{farthest, -1};
  const auto batch = static_cast<std::int64_t>(c.kv_indptr.values.size()) - 1;
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t first = entry(c.cu_seqlens_q, i);
    const std::int64_t count = entry(c.cu_seqlens_q, i + 1) - first;
    const std::int64_t start = entry(c.kv_indptr, i);
    const std::int64_t length = entry(c.kv_indptr, i + 1) - start;
    if (count <= 0 || length <= 0) continue;
    rows = {std::min(rows.first, first), std::max(rows.last, first + count - 1)};
    const Indices seen{plus(start, first_seen(length, count, c.window_size[0] + 1)),
                       plus(start, length) - 1};
    table.box({seen});
    const auto entries = static_cast<std::int64_t>(c.kv_page_indices.values.size());
    for (std::int64_t at = std::max<std::int64_t>(seen.first, 0);
         at <= std::min(seen.last, entries - 1); ++at) {
      pools.slot(entry(c.kv_page_indices, at));
    }
  }
  rows.last = std::min(rows.last, c.q.size(0) - 1);
  std::vector<AddressInterval> list;
  add_rows(list, "q", c.q, rows);
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  table.add_to(list, "block table");
  return list;
}

std::vector<AddressInterval> touched(const PagedRaggedCall& c) {
  Pools pools{Touched(c.key_cache), Touched(c.value_cache), c.key_cache, c.value_cache};
  Touched table(c.kv_page_indices.meta);
  const std::int64_t page_size = std::max<std::int64_t>(c.block_size, 1);
  const auto batch = static_cast<std::int64_t>(c.kv_indptr.values.size()) - 1;
  const std::int64_t most = times(std::max<std::int64_t>(c.max_num_partitions, 0),
                                  std::max<std::int64_t>(c.partition_size, 0));
  for (std::int64_t i = 0; i < std::min(batch, c.query.size(0)); ++i) {
    const std::int64_t start = entry(c.kv_indptr, i);
    const std::int64_t pages = entry(c.kv_indptr, i + 1) - start;
    if (pages <= 0) continue;
    const std::int64_t last = page_size == 1 ? 1 : entry(c.kv_last_page_lens, i, page_size);
    const Walk walk{0, std::min(most, plus(times(pages - 1, page_size), last))};
    if (walk.length <= 0) continue;
    table.box({{start, start + (walk.length - 1) / page_size}});
    pools.pages(c.kv_page_indices, start, walk, page_size);
  }
  std::vector<AddressInterval> list;
  const Indices rows{0, std::min(c.query.size(0), c.out.size(0)) - 1};
  add_rows(list, "q", c.query, rows);
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  add_rows(list, "out", c.out, rows);
  table.add_to(list, "block table");
  Touched workspace(c.workspace_buffer);
  workspace.box({all_of(c.workspace_buffer.size(0))});
  workspace.add_to(list, "split workspace");
  return list;
}

std::vector<AddressInterval> touched(const LegacyExtendCall& c) {
  Pools pools{Touched(c.k_buffer), Touched(c.v_buffer), c.k_buffer, c.v_buffer};
  Touched table(c.kv_indices.meta);
  Indices rows{farthest, -1};
  const auto batch = static_cast<std::int64_t>(c.kv_indptr.values.size()) - 1;
  const auto entries = static_cast<std::int64_t>(c.kv_indices.values.size());
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::int64_t first = entry(c.qo_indptr, i);
    const std::int64_t count = entry(c.qo_indptr, i + 1) - first;
    if (count <= 0) continue;
    rows = {std::min(rows.first, first), std::max(rows.last, first + count - 1)};
    const std::int64_t start = entry(c.kv_indptr, i);
    const std::int64_t prefix = entry(c.kv_indptr, i + 1) - start;
    if (prefix <= 0) continue;
    const std::int64_t oldest =
        first_seen(plus(prefix, count), count, plus(c.sliding_window_size, 1));
    const Indices seen{plus(start, oldest), plus(start, prefix) - 1};
    table.box({seen});
    for (std::int64_t at = std::max<std::int64_t>(seen.first, 0);
         at <= std::min(seen.last, entries - 1); ++at) {
      pools.slot(entry(c.kv_indices, at));
    }
  }
  rows.last = std::min({rows.last, c.q_extend.size(0) - 1, c.o_extend.size(0) - 1});
  std::vector<AddressInterval> list;
  add_rows(list, "q", c.q_extend, rows);
  add_rows(list, "new k", c.k_extend, rows);
  add_rows(list, "new v", c.v_extend, rows);
  pools.k.add_to(list, "k");
  pools.v.add_to(list, "v");
  add_rows(list, "out", c.o_extend, rows);
  table.add_to(list, "block table");
  return list;
}

}  // namespace

std::vector<AddressInterval> address_intervals(const Call& call) {
  return std::visit([](const auto& c) { return touched(c); }, call);
}

}  // namespace attest
