#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"

namespace attest {
namespace {

/// Range of the buffer descriptor of the zeros_past_2_gib fault.
constexpr std::int64_t descriptor_bytes = (std::int64_t{1} << 31) - 2;

RequestShape shape_of(const UnifiedCall& call, std::int64_t i, const Operands& op) {
  RequestShape shape;
  shape.q_heads_per_kv = std::max<std::int64_t>(op.num_q_heads / op.num_kv_heads, 1);
  shape.longest_rows = saturated_count(call.max_seqlen_q);
  shape.v_tile = v_tile_of(op);
  shape.length = saturated_count(array_entry(call.seqused_k, i, "seqused_k"));
  shape.page_size = std::max<std::int64_t>(call.k.size(1), 1);
  // window_size[0] is the largest distance back; the kernel reads no other entry.
  if (call.window_size[0] >= 0) shape.window = saturated_count(call.window_size[0]) + 1;
  if (call.max_seqlen_q == 1) {
    // The all-decode form ignores cu_seqlens_q: row i belongs to request i.
    shape.first_row = i;
    shape.rows = 1;
    return shape;
  }
  shape.first_row = saturated_count(array_entry(call.cu_seqlens_q, i, "cu_seqlens_q"));
  const std::int64_t next = saturated_count(array_entry(call.cu_seqlens_q, i + 1, "cu_seqlens_q"));
  shape.rows = std::max<std::int64_t>(next - shape.first_row, 0);
  return shape;
}

/// Blocks of 64 keys that hold the window of a request's last row.
std::int64_t window_blocks(const RequestShape& shape) {
  const std::int64_t first =
      shape.window > 0 ? std::max<std::int64_t>(0, shape.length - shape.window) : 0;
  return (shape.length + 63) / 64 - first / 64;
}

/// Modelled: the launch has as many blocks as the longest request's window needs.
std::int64_t end_of_the_longests_blocks(const UnifiedCall& call, const RequestShape& shape) {
  RequestShape longest = shape;
  for (const std::int64_t length : call.seqused_k.values) {
    longest.length = std::max(longest.length, saturated_count(length));
  }
  const std::int64_t first = (shape.length + 63) / 64 - window_blocks(shape);
  return (first + window_blocks(longest)) * 64;
}

/// Modelled: the last tile of 64 keys looks up every page it covers.
void look_up_the_last_tile(const UnifiedCall& call, const RequestShape& shape, std::int64_t i) {
  const IntArray& table = call.block_table;
  const std::int64_t covered =
      ((shape.length + 63) / 64 * 64 + shape.page_size - 1) / shape.page_size;
  const std::int64_t entries = table.meta.stride(0) * (table.size(0) - 1) + table.size(1);
  const std::int64_t last = i * table.meta.stride(0) + covered - 1;
  if (covered <= 0 || last < entries) return;
  throw KernelRefusal(place("block_table", i, covered - 1) + " is read past the table's end");
}

/// Modelled: a windowed layer gets the cells from here on, counted from the last one in use, as if
/// one request held them all.
std::int64_t first_cell_of_the_tail(const UnifiedCall& call, const RequestShape& shape) {
  if (shape.window <= 0) return 0;
  std::int64_t cells = 0;
  for (std::int64_t i = 0; i < call.seqused_k.numel(); ++i) {
    const std::int64_t length = saturated_count(array_entry(call.seqused_k, i, "seqused_k"));
    for (std::int64_t c = 0; c * shape.page_size < length; ++c) {
      const std::int64_t page = table_entry(call.block_table, i, c, "block_table");
      cells = std::max(cells, (saturated_count(page) + 1) * shape.page_size);
    }
  }
  return cells - shape.window - call.q.size(0);
}

RowGroup group_of(const UnifiedCall& call, RequestShape shape, std::int64_t i, const KvPools& pools,
                  Execution& run) {
  if (run.op.fault == Fault::page_size_taken_as_16) shape.page_size = 16;
  if (run.op.fault == Fault::partitions_of_the_longest) {
    shape.visited = end_of_the_longests_blocks(call, shape);
  }
  if (run.op.fault == Fault::table_read_to_the_tiles_end) look_up_the_last_tile(call, shape, i);
  const std::int64_t rows = std::min(call.q.size(0), call.out.size(0));
  run.lint_rows_outside("cu_seqlens_q", static_cast<std::size_t>(i), shape.first_row, shape.rows,
                        rows);
  const WrapModel wrap = wrap_of(run.mistake, call.seqused_k.meta.dtype == Dtype::int32);
  const bool tail = run.op.fault == Fault::window_tail_of_the_pool;
  const std::int64_t first_cell = tail ? first_cell_of_the_tail(call, shape) : 0;
  const auto lookup = [&](std::int64_t token) {
    const TablePlace at = table_place(i, token, shape.page_size, run.op.fault);
    const std::int64_t in_page = token % shape.page_size;
    std::int64_t page = table_entry(call.block_table, at.row, at.column, "block_table") + at.behind;
    if (run.op.fault == Fault::page_id_in_16_bits) page &= 0xffff;
    if (run.op.fault == Fault::table_not_consulted) page = at.column;
    const std::optional<KeyRow> found = key_at(pools, page, in_page, wrap);
    if (!found) refuse_outside_pool(place("block_table", at.row, at.column), page);
    KeyRow key = cut_by_descriptor(*found, pools, page, in_page, run.op.fault);
    if (tail) key.absent = page * shape.page_size + in_page < first_cell;
    if (run.op.fault == Fault::v_slot_one_further) {
      key.v = pools.v.row(page, (in_page + 1) % shape.page_size);
    }
    if (run.op.fault == Fault::zeros_past_2_gib) {
      if (pools.k.offset(page, in_page) >= descriptor_bytes) key.k = nullptr;
      if (pools.v.offset(page, in_page) >= descriptor_bytes) key.v = nullptr;
    }
    return key;
  };
  return make_group(shape, rows, run.op.fault, lookup);
}

}  // namespace

RunResult run_unified(const UnifiedCall& call, const TensorSource& source,
                      const RunOptions& options, const Mistake& mistake) {
  if (!call.causal) throw KernelRefusal("causal = false: only causal attention is supported");
  KvPools pools(source, call.k, call.v, Stored::committed_and_new);
  pools.mistake_strides(call.k, call.v, mistake.fault);
  Execution run(source, options, mistake, call.q, call.out, OutLayout::strided);
  run.use_pools(pools);
  run.set_features(call.softmax_scale, call.softcap, call.sinks);
  run.set_descales(call.q_descale.has_value(), call.k_descale.has_value(),
                   call.v_descale.has_value());
  std::int64_t splits = call.launch && call.launch->form == "3d" ? call.launch->kv_splits : 1;
  if (mistake.fault == Fault::splits_from_max_seqlen_k) splits = call.max_seqlen_k / 256 + 1;
  run.set_splits(splits);
  std::vector<RowGroup> groups;
  groups.reserve(static_cast<std::size_t>(call.seqused_k.numel()));
  for (std::int64_t i = 0; i < call.seqused_k.numel(); ++i) {
    RequestShape shape = shape_of(call, i, run.op);
    if (mistake.fault == Fault::first_row_of_the_request_before && i > 0) {
      const RequestShape row = first_row_taken_out(shape, shape_of(call, i - 1, run.op));
      groups.push_back(group_of(call, row, i - 1, pools, run));
    }
    groups.push_back(group_of(call, shape, i, pools, run));
  }
  return run.run(groups, pools);
}

}  // namespace attest
