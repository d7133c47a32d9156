#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "backends/scalar/execution.hpp"
#include "backends/scalar/listed_pages.hpp"
#include "backends/scalar/row_group.hpp"
#include "backends/scalar/signatures.hpp"
#include "backends/scalar/table_walk.hpp"
#include "contracts/signatures/returned_output.hpp"

namespace attest {
namespace {

// Rows of a query tile: the grid covers max_seqlen_q up to the end of one.
constexpr std::int64_t tile_rows = 64;

RequestShape shape_of(const BatchPrefillCall& call, const ListedPages& listed, std::int64_t i,
                      const Operands& op) {
  RequestShape shape;
  shape.q_heads_per_kv = std::max<std::int64_t>(op.num_q_heads / op.num_kv_heads, 1);
  shape.longest_rows = saturated_count(call.max_seqlen_q);
  shape.first_row = saturated_count(array_entry(call.cu_seqlens_q, i, "cu_seqlens_q"));
  const std::int64_t next = saturated_count(array_entry(call.cu_seqlens_q, i + 1, "cu_seqlens_q"));
  shape.rows = std::max<std::int64_t>(next - shape.first_row, 0);
  shape.length = listed.pages(i);
  // A window that max_seqlen_k cannot reach is turned off, and the causal mask with one row, which
  // is the last one and sees no later key either way.
  const std::int64_t left = call.window_size[0];
  shape.causal = (call.causal && call.max_seqlen_q != 1) || shape.rows <= 1;
  if (left >= 0 && left < call.max_seqlen_k) shape.window = saturated_count(left) + 1;
  const std::int64_t longest = saturated_count(call.max_seqlen_q);
  shape.computed_rows = (longest + tile_rows - 1) / tile_rows * tile_rows;
  return shape;
}

}  // namespace

RunResult run_batch_prefill(const BatchPrefillCall& call, const TensorSource& source,
                            const RunOptions& options, const Mistake& mistake) {
  const KvPools pools(source, call.k, call.v, Stored::committed_and_new);
  Execution run(source, options, mistake, call.q, output_of(call), OutLayout::dense);
  run.use_pools(pools);
  const double standard =
      1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, call.q.size(2))));
  run.set_features(call.softmax_scale.value_or(standard), call.logits_soft_cap, call.sink_ptr);
  run.set_descales(call.q_descale.has_value(), call.k_descale.has_value(),
                   call.v_descale.has_value());
  run.set_splits(1);
  const ListedPages listed{call.kv_indptr, call.kv_page_indices, "kv_page_indices"};
  std::vector<RowGroup> groups;
  const bool launched = call.max_seqlen_q > 0 && call.max_seqlen_k > 0;
  const std::int64_t batch = launched ? call.cu_seqlens_q.numel() - 1 : 0;
  for (std::int64_t i = 0; i < batch; ++i) {
    RequestShape shape = shape_of(call, listed, i, run.op);
    run.lint_rows_outside("cu_seqlens_q", static_cast<std::size_t>(i), shape.first_row, shape.rows,
                          call.q.size(0));
    const auto add = [&](const RequestShape& of, std::int64_t request) {
      groups.push_back(make_group(of, call.q.size(0), mistake.fault, [&](std::int64_t token) {
        return listed.key(pools, request, token, mistake);
      }));
    };
    if (mistake.fault == Fault::first_row_of_the_request_before && i > 0) {
      add(first_row_taken_out(shape, shape_of(call, listed, i - 1, run.op)), i - 1);
    }
    add(shape, i);
  }
  return run.run(groups, pools);
}

}  // namespace attest
