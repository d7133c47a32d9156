#include <algorithm>
#include <cmath>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/listed_pages.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "backends/scalar/wrong_lookup.hpp"
#include "memory/host_tensors.hpp"

namespace attest {
namespace {

// Rows per program of the kernel's smallest configuration.
constexpr std::int64_t block_rows = 16;

class LegacyGroups {
 public:
  LegacyGroups(const LegacyExtendCall& call, const KvPools& pools, const KvView& k, const KvView& v,
               Execution& run)
      : call_(call),
        pools_(pools),
        k_(k),
        v_(v),
        run_(run),
        listed_{call.kv_indptr, call.kv_indices, "kv_indices"},
        rows_(std::min(call.q_extend.size(0), call.o_extend.size(0))) {}

  RowGroup of(std::int64_t i) {
    const std::int64_t prefix = std::max<std::int64_t>(0, listed_.pages(i));
    const RequestShape shape = shape_of(i, prefix);
    run_.lint_rows_outside("qo_indptr", static_cast<std::size_t>(i), shape.first_row, shape.rows,
                           rows_);
    return make_group(shape, rows_, run_.op.fault, [&](std::int64_t token) {
      if (token < prefix) return listed_.key(pools_, i, token, run_.mistake);
      const bool from_row_0 = run_.op.fault == Fault::new_keys_from_row_zero;
      return fresh_key((from_row_0 ? 0 : shape.first_row) + token - prefix);
    });
  }

 private:
  RequestShape shape_of(std::int64_t i, std::int64_t prefix) {
    RequestShape shape;
    shape.first_row = saturated_count(array_entry(call_.qo_indptr, i, "qo_indptr"));
    const std::int64_t next = saturated_count(array_entry(call_.qo_indptr, i + 1, "qo_indptr"));
    shape.rows = std::clamp<std::int64_t>(next - shape.first_row, 0, std::int64_t{1} << 20);
    shape.length = prefix + shape.rows;
    const std::int64_t longest = std::max<std::int64_t>(0, saturated_count(call_.max_len_extend));
    shape.computed_rows = (longest + block_rows - 1) / block_rows * block_rows;
    shape.longest_rows = longest;
    shape.causal = call_.is_causal || call_.custom_mask.has_value();
    if (call_.sliding_window_size >= 0) {
      shape.window = saturated_count(call_.sliding_window_size) + 1;
    }
    if (call_.custom_mask && shape.rows > 0) {
      shape.tree = square_of(*call_.custom_mask, i, prefix, shape.rows);
      shape.tree_block = shape.rows;
    }
    return shape;
  }

  /// The part of the mask over the new tokens, (rows, rows).
  std::span<const std::int64_t> square_of(const IntArray& mask, std::int64_t i, std::int64_t prefix,
                                          std::int64_t rows) {
    if (!call_.mask_indptr) throw KernelRefusal("custom_mask comes without mask_indptr");
    std::vector<std::int64_t>& square = squares_.emplace_back();
    const bool first = run_.op.fault == Fault::tree_mask_of_first_request;
    const std::int64_t start =
        saturated_count(array_entry(*call_.mask_indptr, first ? 0 : i, "mask_indptr"));
    const bool shorter = run_.op.fault == Fault::mask_row_stride_without_new;
    const std::int64_t row_stride = shorter ? prefix : prefix + rows;
    for (std::int64_t t = 0; t < rows; ++t) {
      const std::int64_t row = start + t * row_stride;
      if (!call_.skip_prefix_custom_mask) require_whole_prefix(mask, row, prefix);
      for (std::int64_t u = 0; u < rows; ++u) {
        const std::int64_t bit = run_.op.fault == Fault::mask_bytes_reused ? u % 8 : u;
        square.push_back(array_entry(mask, row + prefix + bit, "custom_mask"));
      }
    }
    std::vector<std::int64_t> misread = misread_mask(square, rows, run_.op.fault);
    if (!misread.empty()) square = std::move(misread);
    return square;
  }

  static void require_whole_prefix(const IntArray& mask, std::int64_t row, std::int64_t prefix) {
    for (std::int64_t k = 0; k < prefix; ++k) {
      if (array_entry(mask, row + k, "custom_mask") != 0) continue;
      throw KernelRefusal("custom_mask hides a key of the prefix, which is not modelled");
    }
  }

  KeyRow fresh_key(std::int64_t row) const {
    const KeyRow key{k_.row(row, 0), v_.row(row, 0), true};
    if (key.k && key.v) return key;
    throw KernelRefusal("row " + std::to_string(row) + " lies past k_extend or v_extend");
  }

  const LegacyExtendCall& call_;
  const KvPools& pools_;
  const KvView& k_;
  const KvView& v_;
  Execution& run_;
  ListedPages listed_;
  std::int64_t rows_;
  std::deque<std::vector<std::int64_t>> squares_;  ///< the groups look into them
};

}  // namespace

RunResult run_legacy_extend(const LegacyExtendCall& call, const TensorSource& source,
                            const RunOptions& options, const Mistake& mistake) {
  if (call.k_scale != 1 || call.v_scale != 1) {
    throw KernelRefusal("k_scale and v_scale other than 1 are not modelled");
  }
  const KvPools pools(source, call.k_buffer, call.v_buffer, Stored::committed_and_new);
  const GuardedBuffer k_buffer = make_new_kv(source, call.k_extend, false);
  const GuardedBuffer v_buffer = make_new_kv(source, call.v_extend, true);
  const KvView k(k_buffer, call.k_extend);
  const KvView v(v_buffer, call.v_extend);
  Execution run(source, options, mistake, call.q_extend, call.o_extend, OutLayout::strided);
  run.use_pools(pools);
  run.use_fresh(k, v);
  const double standard =
      1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, call.q_extend.size(2))));
  run.set_features(call.sm_scale.value_or(standard), call.logit_cap, call.sinks);
  run.set_splits(1);
  LegacyGroups build(call, pools, k, v, run);
  std::vector<RowGroup> groups;
  for (std::int64_t i = 0; i + 1 < call.qo_indptr.numel(); ++i) groups.push_back(build.of(i));
  RunResult result = run.run(groups, pools);
  add_guard_damage("k_extend", k_buffer, result.damage);
  add_guard_damage("v_extend", v_buffer, result.damage);
  return result;
}

}  // namespace attest
