#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/extend_arguments.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"
#include "memory/host_tensors.hpp"

namespace attest {
namespace {

/// K and V of the new tokens, which this kernel reads from tensors of their own.
struct FreshKv {
  FreshKv(const TensorSource& source, const ExtendCall& call) {
    if (!call.k_extend || !call.v_extend) return;
    k_buffer.emplace(make_new_kv(source, *call.k_extend, false));
    v_buffer.emplace(make_new_kv(source, *call.v_extend, true));
    k = KvView(*k_buffer, *call.k_extend);
    v = KvView(*v_buffer, *call.v_extend);
  }
  std::optional<GuardedBuffer> k_buffer, v_buffer;
  KvView k, v;
};

class ExtendGroups {
 public:
  ExtendGroups(const ExtendCall& call, const KvPools& pools, const FreshKv& fresh, Execution& run)
      : call_(call),
        pools_(pools),
        fresh_(fresh),
        run_(run),
        rows_(std::min(call.q_extend.size(0), call.o_extend.size(0))) {
    wrap_ = wrap_of(run.mistake, call.req_to_token.meta.dtype == Dtype::int32);
  }

  RowGroup of(std::size_t i) {
    const RequestShape shape = shape_of(i);
    run_.lint_rows_outside("extend_start_loc", i, shape.first_row, shape.rows, rows_);
    const std::int64_t encoder = call_.encoder_lens ? saturated_count((*call_.encoder_lens)[i]) : 0;
    const std::int64_t first_column = call_.is_cross_attn ? 0 : encoder;
    const std::int64_t pool_keys = shape.causal ? shape.length - shape.rows : shape.length;
    return make_group(shape, rows_, run_.op.fault, [&](std::int64_t token) {
      if (token < pool_keys) return pool_key(i, first_column + token);
      const bool from_row_0 = run_.op.fault == Fault::new_keys_from_row_zero;
      return fresh_key(i, (from_row_0 ? 0 : shape.first_row) + token - pool_keys);
    });
  }

 private:
  RequestShape shape_of(std::size_t i) {
    RequestShape shape;
    shape.first_row = saturated_count(call_.extend_start_loc[i]);
    shape.rows = call_.extend_seq_lens[i];
    shape.length = call_.seq_lens[i];
    shape.v_tile = v_tile_of(run_.op);
    const std::int64_t longest = saturated_count(call_.max_len_extend);
    const std::int64_t block = extend_block(longest);
    shape.computed_rows = (std::max<std::int64_t>(longest, 0) + block - 1) / block * block;
    if (call_.is_cross_attn) {
      shape.causal = false;
      if (call_.encoder_lens) shape.length = saturated_count((*call_.encoder_lens)[i]);
      return shape;
    }
    if (call_.sliding_window_size > 0) shape.window = saturated_count(call_.sliding_window_size);
    if (run_.op.fault == Fault::pool_pass_reads_new_rows) {
      // Modelled: the pass over the pool covers the whole length, and neither pass has a window.
      shape.length += shape.rows;
      shape.window = 0;
    }
    if (call_.tree_mask) {
      const auto square = static_cast<std::size_t>(shape.rows * shape.rows);
      const bool first = run_.op.fault == Fault::tree_mask_of_first_request;
      shape.tree = std::span(call_.tree_mask->values).subspan(first ? 0 : i * square, square);
      std::vector<std::int64_t> misread = misread_mask(shape.tree, shape.rows, run_.op.fault);
      if (!misread.empty()) shape.tree = masks_.emplace_back(std::move(misread));
      shape.tree_block = block;
    }
    return shape;
  }

  KeyRow pool_key(std::size_t i, std::int64_t column) const {
    const bool stale = run_.op.fault == Fault::stale_page && column < stale_slots && i > 0;
    const std::int64_t row = call_.req_pool_indices[stale ? i - 1 : i];
    std::int64_t slot = table_entry(call_.req_to_token, row, column, "req_to_token");
    if (run_.op.fault == Fault::table_not_consulted) slot = column;
    const std::optional<KeyRow> key = key_at(pools_, slot, 0, wrap_);
    if (!key) refuse_outside_pool(place("req_to_token", row, column), slot);
    return *key;
  }

  KeyRow fresh_key(std::size_t i, std::int64_t row) const {
    const KeyRow key{fresh_.k.row(row, 0), fresh_.v.row(row, 0), true};
    if (key.k && key.v) return key;
    throw KernelRefusal("request " + std::to_string(i) + " needs row " + std::to_string(row) +
                        " of k_extend and v_extend, which end before");
  }

  const ExtendCall& call_;
  const KvPools& pools_;
  const FreshKv& fresh_;
  Execution& run_;
  const std::int64_t rows_;
  WrapModel wrap_;
  std::deque<std::vector<std::int64_t>> masks_;  ///< that a fault misread; groups look into them
};

}  // namespace

RunResult run_extend(const ExtendCall& call, const TensorSource& source, const RunOptions& options,
                     const Mistake& mistake) {
  check_extend_arguments(call);
  KvPools pools(source, call.k_buffer, call.v_buffer, Stored::committed_and_new);
  pools.mistake_strides(call.k_buffer, call.v_buffer, mistake.fault);
  const FreshKv fresh(source, call);
  Execution run(source, options, mistake, call.q_extend, call.o_extend, OutLayout::dense);
  run.use_pools(pools);
  if (fresh.k_buffer) run.use_fresh(fresh.k, fresh.v);
  run.set_features(call.sm_scale, call.logit_cap, call.sinks);
  run.set_splits(1);
  std::vector<RowGroup> groups;
  ExtendGroups build(call, pools, fresh, run);
  groups.reserve(call.seq_lens.values.size());
  for (std::size_t i = 0; i < call.seq_lens.values.size(); ++i) groups.push_back(build.of(i));
  RunResult result = run.run(groups, pools);
  if (fresh.k_buffer && fresh.v_buffer) {
    add_guard_damage("k_extend", *fresh.k_buffer, result.damage);
    add_guard_damage("v_extend", *fresh.v_buffer, result.damage);
  }
  return result;
}

}  // namespace attest
