#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"
#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/vllm_cpu.hpp"

namespace attest {
namespace {

/// What the real operator checks before it starts.
void refuse_what_is_not_taken(const VllmCpuCall& call) {
  for (const auto& [name, array] : {std::pair("query_start_loc", &call.query_start_loc),
                                    {"seq_lens", &call.seq_lens},
                                    {"block_table", &call.block_table}}) {
    if (array->meta.dtype != Dtype::int32) {
      throw KernelRefusal(std::string(name) + " is " +
                          std::string(attest::name(array->meta.dtype)) + ", int32 is read");
    }
  }
  const std::int64_t multiple = vllm_cpu_alignment(call.isa);
  if (call.key_cache.size(2) < 1 || call.key_cache.size(2) % multiple != 0) {
    throw KernelRefusal("blocks of " + std::to_string(call.key_cache.size(2)) +
                        " tokens, a multiple of " + std::to_string(multiple) + " is taken");
  }
  if (!vllm_cpu_takes_head_dim(call.query.size(2))) {
    throw KernelRefusal("no kernel for heads of " + std::to_string(call.query.size(2)));
  }
  const bool wide_heads = call.isa == "amx" || call.isa == "vec";
  if ((call.isa == "amx" && call.query.dtype != Dtype::bf16) ||
      (wide_heads && call.query.size(2) % 32 != 0)) {
    throw KernelRefusal("no kernel of the form " + call.isa + " for heads of " +
                        std::to_string(call.query.size(2)) + " in " +
                        std::string(name(call.query.dtype)));
  }
  if (call.kv_cache_dtype != "auto") {
    throw KernelRefusal("kv_cache_dtype " + call.kv_cache_dtype + ": only auto is taken here");
  }
}

/// The cache as the kernel addresses it: K's strides for blocks and heads, dense blocks. What lies
/// inside a block is packed for the real kernel's tiles, here it is rows of tokens.
TensorMeta as_addressed(const VllmCpuCall& call, const TensorMeta& cache) {
  TensorMeta view = cache;
  view.strides = {call.key_cache.stride(0), call.key_cache.stride(1), call.query.size(2), 1};
  view.shape[3] = call.query.size(2);
  return swap_heads_and_tokens(std::move(view));
}

/// New tokens of the request that has most.
std::int64_t longest_rows(const VllmCpuCall& call) {
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < call.query_start_loc.values.size(); ++i) {
    const std::int64_t begin = saturated_count(call.query_start_loc.values[i - 1]);
    longest = std::max(longest, saturated_count(call.query_start_loc.values[i]) - begin);
  }
  return longest;
}

RequestShape shape_of(const VllmCpuCall& call, std::int64_t i, const Operands& op) {
  RequestShape shape;
  shape.q_heads_per_kv = std::max<std::int64_t>(op.num_q_heads / op.num_kv_heads, 1);
  if (op.fault == Fault::causal_from_the_longest_request) shape.longest_rows = longest_rows(call);
  shape.length = saturated_count(array_entry(call.seq_lens, i, "seq_lens"));
  shape.page_size = call.key_cache.size(2);
  shape.first_row = saturated_count(array_entry(call.query_start_loc, i, "query_start_loc"));
  const std::int64_t next =
      saturated_count(array_entry(call.query_start_loc, i + 1, "query_start_loc"));
  shape.rows = std::max<std::int64_t>(next - shape.first_row, 0);
  shape.window = std::max<std::int64_t>(0, saturated_count(call.sliding_window));
  // One row stands at the last key: it sees the same either way.
  shape.causal = call.causal || shape.rows <= 1;
  if (!shape.causal && shape.window > 0) {
    throw KernelRefusal("causal = false under a window: a window to both sides is not modelled");
  }
  return shape;
}

RowGroup group_of(const VllmCpuCall& call, RequestShape shape, std::int64_t i, const KvPools& pools,
                  Execution& run) {
  if (run.op.fault == Fault::page_size_taken_as_16) shape.page_size = 16;
  const std::int64_t rows = std::min(call.query.size(0), call.output.size(0));
  run.lint_rows_outside("query_start_loc", static_cast<std::size_t>(i), shape.first_row, shape.rows,
                        rows);
  const WrapModel wrap = wrap_of(run.mistake, /*narrow=*/false);
  const auto lookup = [&](std::int64_t token) {
    const TablePlace at = table_place(i, token, shape.page_size, run.op.fault);
    const std::int64_t in_page = token % shape.page_size;
    const std::int64_t page =
        table_entry(call.block_table, at.row, at.column, "block_table") + at.behind;
    const std::optional<KeyRow> key = key_at(pools, page, in_page, wrap);
    if (!key) refuse_outside_pool(place("block_table", at.row, at.column), page);
    return *key;
  };
  return make_group(shape, rows, run.op.fault, lookup);
}

}  // namespace

RunResult run_vllm_cpu(const VllmCpuCall& call, const TensorSource& source,
                       const RunOptions& options, const Mistake& mistake) {
  refuse_what_is_not_taken(call);
  KvPools pools(source, swap_heads_and_tokens(call.key_cache),
                swap_heads_and_tokens(call.value_cache), Stored::committed_and_new);
  const KvPool& v_pool = pools.v_pool ? *pools.v_pool : pools.k_pool;
  pools.k = KvView(pools.k_pool, as_addressed(call, call.key_cache));
  pools.v = KvView(v_pool, as_addressed(call, call.value_cache));
  Execution run(source, options, mistake, call.query, call.output, OutLayout::dense);
  run.use_pools(pools);
  run.set_features(call.scale, call.softcap, call.s_aux);
  run.set_splits(1);
  std::vector<RowGroup> groups;
  groups.reserve(static_cast<std::size_t>(call.seq_lens.numel()));
  for (std::int64_t i = 0; i < call.seq_lens.numel(); ++i) {
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
