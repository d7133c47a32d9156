#include "contracts/touched_parts.hpp"

// Calls that list their keys in one flat array.

namespace attest::touching {

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
    pools.slots(c.kv_page_indices, seen);
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
    pools.slots(c.kv_indices, seen);
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

}  // namespace attest::touching
