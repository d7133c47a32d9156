#include "contracts/rules/dense_arrays.hpp"

#include <string>

#include "contracts/rules/call_tensors.hpp"

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
};

}  // namespace

std::span<const Rule> dense_arrays_rules() { return rules; }

}  // namespace attest
