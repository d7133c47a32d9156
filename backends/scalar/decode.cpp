#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "memory/host_tensors.hpp"

namespace attest {
namespace {

/// What the real kernel checks before it starts. It does not compare the number of query rows, of
/// pool indices and of seq_lens with each other.
void check_arguments(const DecodeCall& call) {
  for (std::size_t i = 0; i < call.seq_lens.values.size(); ++i) {
    const std::int64_t row =
        array_entry(call.req_pool_indices, static_cast<std::int64_t>(i), "req_pool_indices");
    if (row >= call.req_to_token.size(0)) {
      throw KernelRefusal("req_pool_indices[" + std::to_string(i) + "] = " + std::to_string(row) +
                          " is outside the " + std::to_string(call.req_to_token.size(0)) +
                          " rows of req_to_token");
    }
    const std::int64_t length = call.seq_lens[i];
    if (length <= call.req_to_token.size(1)) continue;
    throw KernelRefusal("seq_lens[" + std::to_string(i) + "] = " + std::to_string(length) +
                        " exceeds the " + std::to_string(call.req_to_token.size(1)) +
                        " columns of req_to_token");
  }
  if (!call.key || !call.value) return;
  if (call.loc.values.size() == call.seq_lens.values.size()) return;
  throw KernelRefusal("loc has " + std::to_string(call.loc.values.size()) +
                      " entries, seq_lens has " + std::to_string(call.seq_lens.values.size()));
}

/// Where the new token of request i is stored. The faulty kernel stores it one slot on, where the
/// pool has one.
std::int64_t store_slot(const DecodeCall& call, std::size_t i, const KvPools& pools, Fault fault) {
  const std::int64_t slot = call.loc[i];
  if (fault != Fault::stores_at_next_slot) return slot;
  return pools.can_store(slot + 1) ? slot + 1 : slot;
}

/// Copies one new row, head by head, to its slot.
void store_row(const std::byte* from, std::int64_t from_head_bytes, const KvView& view,
               std::byte* to) {
  for (std::int64_t h = 0; h < view.heads(); ++h) {
    std::memcpy(to + h * view.head_stride_bytes(), from + h * from_head_bytes,
                static_cast<std::size_t>(view.row_bytes()));
  }
}

void store_half(const DecodeCall& call, const TensorMeta& rows, const GuardedBuffer& buffer,
                const KvView& view, const KvPool& pool, const KvPools& pools, Fault fault,
                const char* name) {
  const KvView source(buffer, rows);
  if (source.dtype() != view.dtype() || source.dim() != view.dim() ||
      source.heads() != view.heads()) {
    throw KernelRefusal(std::string(name) + " rows do not have the shape of the pool's");
  }
  for (std::size_t i = 0; i < call.seq_lens.values.size(); ++i) {
    const std::byte* const from = source.row(static_cast<std::int64_t>(i), 0);
    if (!from) {
      throw KernelRefusal(std::string(name) + " has " + std::to_string(rows.size(0)) +
                          " rows, seq_lens has " + std::to_string(call.seq_lens.values.size()));
    }
    const std::int64_t slot = store_slot(call, i, pools, fault);
    const WrapModel wrap = fault == Fault::store_offset_in_int32
                               ? WrapModel{WrapStep::slot_sum, WrapKind::int32}
                               : WrapModel{};
    const std::byte* at = view.row(slot, 0, wrap);
    const bool moved = at != view.row(slot, 0);
    if (moved || !pools.can_store(slot)) {
      throw KernelRefusal("loc[" + std::to_string(i) + "] = " + std::to_string(slot) +
                          " is outside the pool, or nobody's slot of a sparse one");
    }
    std::ptrdiff_t to = at - pool.base();
    if (fault == Fault::store_rounded_to_16_bytes) to = to / 16 * 16;
    store_row(from, source.head_stride_bytes(), view, pool.base() + to);
  }
}

/// key and value go to the pools before attention.
void store_new_tokens(const DecodeCall& call, const TensorSource& source, KvPools& pools,
                      Fault fault, std::vector<std::string>& damage) {
  if (!call.key || !call.value) return;
  pools.written_slots = call.loc.values;
  const GuardedBuffer key = make_new_kv(source, *call.key, false);
  store_half(call, *call.key, key, pools.k, pools.k_pool, pools, fault, "key");
  add_guard_damage("key", key, damage);
  if (!pools.v_pool) return;  // V is part of the row just stored
  const GuardedBuffer value = make_new_kv(source, *call.value, true);
  store_half(call, *call.value, value, pools.v, *pools.v_pool, pools, fault, "value");
  add_guard_damage("value", value, damage);
}

RowGroup group_of(const DecodeCall& call, std::size_t i, const KvPools& pools, Execution& run) {
  const Fault fault = run.op.fault;
  RequestShape shape;
  shape.first_row = static_cast<std::int64_t>(i);
  shape.rows = 1;
  shape.length = saturated_count(call.seq_lens[i]);
  std::int64_t first_column = 0;
  const auto encoder = [&](std::int64_t otherwise) {
    return call.encoder_lens
               ? saturated_count(array_entry(*call.encoder_lens, shape.first_row, "encoder_lens"))
               : otherwise;
  };
  if (call.is_cross_attn) {
    shape.causal = false;
    shape.length = encoder(shape.length);
  } else {
    first_column = encoder(0);
    shape.window = saturated_count(call.sliding_window_size);
    // The window's shift replaces the encoder's in this kernel.
    if (shape.window > 0 && shape.window < shape.length) first_column = 0;
  }
  const std::int64_t rows = std::min(call.query.size(0), call.output.size(0));
  const WrapModel wrap = wrap_of(run.mistake, call.req_to_token.meta.dtype == Dtype::int32);
  run.lint_rows_outside("seq_lens", i, shape.first_row, 1, rows);
  return make_group(shape, rows, fault, [&](std::int64_t token) {
    const std::int64_t column = first_column + token;
    const bool stale = fault == Fault::stale_page && column < stale_slots && i > 0;
    const bool first = fault == Fault::request_index_dropped;
    const std::int64_t row = call.req_pool_indices[first ? 0 : stale ? i - 1 : i];
    const std::int64_t slot = table_entry(call.req_to_token, row, column, "req_to_token");
    const std::optional<KeyRow> key = key_at(pools, slot, 0, wrap);
    if (!key) refuse_outside_pool(place("req_to_token", row, column), slot);
    return *key;
  });
}

}  // namespace

RunResult run_decode(const DecodeCall& call, const TensorSource& source, const RunOptions& options,
                     const Mistake& mistake) {
  check_arguments(call);
  KvPools pools(source, call.k_buffer, call.v_buffer, Stored::committed);
  std::vector<std::string> damage;
  store_new_tokens(call, source, pools, mistake.fault, damage);
  pools.mistake_strides(call.k_buffer, call.v_buffer, mistake.fault);
  Execution run(source, options, mistake, call.query, call.output, OutLayout::dense);
  run.use_pools(pools);
  run.set_features(call.sm_scale, call.logit_cap, call.sinks);
  run.set_splits(call.attn_logits.size(2));
  std::vector<RowGroup> groups;
  groups.reserve(call.seq_lens.values.size());
  for (std::size_t i = 0; i < call.seq_lens.values.size(); ++i) {
    groups.push_back(group_of(call, i, pools, run));
  }
  RunResult result = run.run(groups, pools);
  result.damage.insert(result.damage.end(), damage.begin(), damage.end());
  return result;
}

}  // namespace attest
