#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/listed_pages.hpp"
#include "backends/scalar/mla_work.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"

namespace attest {
namespace {

/// V as the head of every latent row.
TensorMeta latent_v(TensorMeta kv, std::int64_t v_head_dim) {
  if (!kv.shape.empty()) kv.shape.back() = std::min(kv.shape.back(), v_head_dim);
  return kv;
}

TensorMeta labelled(TensorMeta meta) {
  if (meta.storage.empty()) meta.storage = "kv_buffer";
  return meta;
}

/// Modelled: V is taken to lie behind the rotary part of a row, which comes last.
KeyRow behind_the_rope(KeyRow key, const Operands& op) {
  if (op.fault != Fault::latent_v_behind_the_rope || key.v == nullptr) return key;
  key.v += (op.head_dim - op.v_head_dim) * static_cast<std::int64_t>(size_bytes(op.pool.v_dtype));
  return key;
}

RequestShape shape_of(const MlaDecodeCall& call, std::int64_t i) {
  RequestShape shape;
  // One query length is part of the address arithmetic: row r of request i is i * length + r,
  // whatever qo_indptr says.
  shape.rows = std::max<std::int64_t>(saturated_count(call.max_seqlen_q), 0);
  shape.first_row =
      saturated_count(saturated_count(i) * std::min(shape.rows, std::int64_t{1} << 20));
  shape.page_size = std::max<std::int64_t>(saturated_count(call.page_size), 1);
  const std::int64_t pages =
      ListedPages{call.kv_indptr, call.kv_indices, "kv_indices", shape.page_size}.pages(i);
  shape.length = pages;
  if (shape.page_size > 1) {
    const std::int64_t last = array_entry(call.kv_last_page_lens, i, "kv_last_page_lens");
    const std::int64_t full = std::min(pages - 1, (std::int64_t{1} << 40) / shape.page_size);
    shape.length = pages > 0 ? full * shape.page_size + saturated_count(last) : 0;
  }
  return shape;
}

/// Modelled: int64 entries read through an int32 pointer, little endian: value, 0, value, 0.
void read_as_int32(IntArray& array) {
  if (array.meta.dtype != Dtype::int64) return;
  const std::vector<std::int64_t> stored = array.values;
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    array.values[i] = i % 2 == 0 ? stored[i / 2] : 0;
  }
}

/// Rows that q, the output and the offsets have.
std::int64_t rows_of(const MlaDecodeCall& call) {
  const std::vector<std::int64_t>& offsets = call.qo_indptr.values;
  return std::min(
      {call.q.size(0), call.o.size(0), offsets.empty() ? 0 : saturated_count(offsets.back())});
}

RowGroup group_of(const MlaDecodeCall& call, std::int64_t i, const KvPools& pools, Execution& run) {
  RequestShape shape = shape_of(call, i);
  shape.v_tile = v_tile_of(run.op);
  const std::int64_t rows = rows_of(call);
  run.lint_rows_outside("max_seqlen_q", static_cast<std::size_t>(i), shape.first_row, shape.rows,
                        rows);
  const Fault fault = run.op.fault;
  const ListedPages listed{call.kv_indptr, call.kv_indices, "kv_indices", shape.page_size};
  return make_group(shape, rows, fault, [&](std::int64_t token) {
    return behind_the_rope(listed.key(pools, i, token, run.mistake), run.op);
  });
}

/// One work's rows and what they see of its keys. A row's position counts back from the end of the
/// request, which lies keys_after behind the work's last key.
RowGroup group_of(const MlaDecodeCall& call, const WorkItem& work, const KvPools& pools,
                  Execution& run) {
  const std::int64_t rows = rows_of(call);
  const std::int64_t length = std::max<std::int64_t>(saturated_count(call.max_seqlen_q), 1);
  run.lint_rows_outside("work_info_set", work.index, work.first_row, work.last_row - work.first_row,
                        rows);
  RowGroup group;
  std::int64_t last_key = work.first_key;
  for (std::int64_t row = std::max<std::int64_t>(work.first_row, 0);
       row < std::min(work.last_row, rows); ++row) {
    const std::int64_t hidden = length - 1 - row % length;
    const std::int64_t end =
        std::min(work.last_key, work.last_key + work.keys_after - hidden) - work.first_key;
    group.rows.push_back({.row = row, .begin = 0, .end = std::max<std::int64_t>(end, 0)});
    last_key = std::max(last_key, work.first_key + end);
  }
  const ListedPages listed{call.kv_indptr, call.kv_indices, "kv_indices"};
  for (std::int64_t key = work.first_key; key < last_key; ++key) {
    group.keys.push_back(behind_the_rope(listed.entry(pools, key, 0, run.mistake), run.op));
  }
  return group;
}

RunResult run_works(const MlaDecodeCall& call, const KvPools& pools, Execution& run) {
  const WorkLists lists = work_lists(call);
  std::vector<RowGroup> groups;
  groups.reserve(lists.works.size());
  for (const WorkItem& work : lists.works) groups.push_back(group_of(call, work, pools, run));
  RunResult result =
      run.run(groups, pools, [&](const Operands& op) { attend_works(op, lists, groups); });
  result.form = "work lists";
  return result;
}

}  // namespace

RunResult run_mla_decode(const MlaDecodeCall& passed, const TensorSource& source,
                         const RunOptions& options, const Mistake& mistake) {
  MlaDecodeCall call = passed;
  if (mistake.fault == Fault::int64_offsets_read_as_int32) read_as_int32(call.kv_indptr);
  if (call.logit_cap > 0) throw KernelRefusal("logit_cap must be <= 0");
  const TensorMeta kv = labelled(call.kv_buffer);
  const KvPools pools(source, kv, latent_v(kv, call.o.size(2)), Stored::committed_and_new);
  Execution run(source, options, mistake, call.q, call.o, OutLayout::strided);
  run.use_pools(pools);
  run.set_features(call.sm_scale, 0, std::nullopt);
  run.set_descales(call.q_scale.has_value(), call.kv_scale.has_value(), call.kv_scale.has_value());
  run.set_splits(call.num_kv_splits.value_or(1));
  if (call.persistent && call.work_info_set) return run_works(call, pools, run);
  const std::size_t offsets = std::min(call.qo_indptr.values.size(), call.kv_indptr.values.size());
  std::vector<RowGroup> groups;
  for (std::size_t i = 0; i + 1 < offsets; ++i) {
    groups.push_back(group_of(call, static_cast<std::int64_t>(i), pools, run));
  }
  return run.run(groups, pools);
}

}  // namespace attest
