#include "contracts/rules/dense_arrays.hpp"

#include <algorithm>
#include <string>

#include "contracts/byte_overlap.hpp"
#include "contracts/rules/call_tensors.hpp"
#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/page_table.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

void is_dense(const NamedTensor& array, Report& report) {
  const TensorMeta& t = *array.meta;
  if (t.shape.size() != 1 || t.shape[0] <= 1 || t.strides[0] == 1) return;
  report.add(std::string(array.name) + ".stride(0)", std::to_string(t.strides[0]), "1");
}

template <TensorRole role, class CallType>
void are_dense(const CallType& call, const Truth&, Report& report) {
  for (const NamedTensor& t : tensors_of(call)) {
    if (t.role == role) is_dense(t, report);
  }
}

/// Columns of the table that hold a page of some request's keys, by the truth.
std::int64_t columns_in_use(const PageTable& table, const Problem& problem) {
  std::int64_t keys = 0;
  for (const Request& r : problem.requests) {
    if (counts(r, problem)) keys = std::max(keys, r.kv_len());
  }
  return keys / table.page_size + (keys % table.page_size > 0 ? 1 : 0);
}

void table_rows_are_apart(const PageTable& table, const Truth& truth, Report& report) {
  const TensorMeta& whole = table.cells.meta;
  if (!overlaps_itself(whole)) return;
  // A view may reach into the next row with columns that no request has a page in.
  TensorMeta used = whole;
  used.shape[1] = std::min(used.shape[1], columns_in_use(table, truth.problem));
  report.add(overlaps_itself(used) ? Severity::wrong : Severity::policy, "block_table.strides",
             strides_text(whole) + " for " + shape_text(whole),
             "rows " + std::to_string(whole.shape[1]) + " or more cells apart: " +
                 std::to_string(used.shape[1]) + " hold pages of a request");
}

constexpr Rule rules[] = {
    {.id = "seq_lens.is_dense",
     .says = "seq_lens, req_pool_indices, extend_seq_lens, extend_start_loc, encoder_lens and loc "
             "have stride 1",
     .why = "the kernels take the data pointer and add the request: a column of a wider tensor, or "
            "an expanded value, is read as its neighbours",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp and decode.cpp, "
               "seq_lens.data_ptr<int64_t>()",
     .extend = are_dense<TensorRole::index, ExtendCall>,
     .decode = are_dense<TensorRole::index, DecodeCall>},
    {.id = "sinks.are_dense",
     .says = "the sinks have stride 1",
     .why = "the kernels add the head to the pointer: heads then get other heads' sinks, or what "
            "lies behind them",
     .source = "ROCm/aiter aiter/ops/triton/_triton_kernels/attention/unified_attention.py: "
               "sink_ptr; sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, sinks",
     .unified = are_dense<TensorRole::sinks, UnifiedCall>,
     .extend = are_dense<TensorRole::sinks, ExtendCall>,
     .decode = are_dense<TensorRole::sinks, DecodeCall>,
     .batch_prefill = are_dense<TensorRole::sinks, BatchPrefillCall>,
     .legacy_extend = are_dense<TensorRole::sinks, LegacyExtendCall>,
     .vllm_cpu = are_dense<TensorRole::sinks, VllmCpuCall>},
    {.id = "block_table.rows_do_not_overlap",
     .says = "rows of block_table share no cell; policy where only cells behind every request's "
             "last page do",
     .why = "a request's newest pages are then the first ones of the next request, and whoever "
            "fills one row changes the other",
     .source = "sgl-project/sglang#35985; PyTorch aten/src/ATen/MemoryOverlap.h, "
               "assert_no_internal_overlap",
     .unified = on_table<table_rows_are_apart, UnifiedCall>,
     .vllm_cpu = on_table<table_rows_are_apart, VllmCpuCall>},
};

}  // namespace

std::span<const Rule> dense_arrays_rules() { return rules; }

}  // namespace attest
