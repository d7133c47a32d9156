#include "contracts/rules/dtypes.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/work_lists.hpp"

namespace attest {
namespace {

void expect_dtype(std::string_view tensor, Dtype got, Dtype expected, Report& report) {
  if (got == expected) return;
  report.add(std::string(tensor) + ".dtype", std::string(name(got)),
             std::string(name(expected)) + ", the layer's");
}

void are_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("q", call.q.dtype, m.q_dtype, report);
  expect_dtype("k", call.k.dtype, m.kv_dtype, report);
  expect_dtype("v", call.v.dtype, m.kv_dtype, report);
  expect_dtype("out", call.out.dtype, m.out_dtype, report);
}

void are_the_layers(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("q", call.q.dtype, m.q_dtype, report);
  expect_dtype("kv_buffer", call.kv_buffer.dtype, m.kv_dtype, report);
  expect_dtype("o", call.o.dtype, m.out_dtype, report);
}

void are_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("q", call.q.dtype, m.q_dtype, report);
  expect_dtype("k", call.k.dtype, m.kv_dtype, report);
  expect_dtype("v", call.v.dtype, m.kv_dtype, report);
}

void are_the_layers(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("query", call.query.dtype, m.q_dtype, report);
  expect_dtype("key_cache", call.key_cache.dtype, m.kv_dtype, report);
  expect_dtype("value_cache", call.value_cache.dtype, m.kv_dtype, report);
  expect_dtype("out", call.out.dtype, m.out_dtype, report);
}

void are_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("q_extend", call.q_extend.dtype, m.q_dtype, report);
  expect_dtype("k_extend", call.k_extend.dtype, m.kv_dtype, report);
  expect_dtype("v_extend", call.v_extend.dtype, m.kv_dtype, report);
  expect_dtype("k_buffer", call.k_buffer.dtype, m.kv_dtype, report);
  expect_dtype("v_buffer", call.v_buffer.dtype, m.kv_dtype, report);
  expect_dtype("o_extend", call.o_extend.dtype, m.out_dtype, report);
}

void are_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_dtype("query", call.query.dtype, m.q_dtype, report);
  expect_dtype("key_cache", call.key_cache.dtype, m.kv_dtype, report);
  expect_dtype("value_cache", call.value_cache.dtype, m.kv_dtype, report);
  expect_dtype("output", call.output.dtype, m.out_dtype, report);
}

void q_is_not_narrower(const UnifiedCall& call, const Truth&, Report& report) {
  if (!is_fp8(call.q.dtype) || is_fp8(call.k.dtype)) return;
  report.add("q.dtype", std::string(name(call.q.dtype)),
             "16 bits or more over " + std::string(name(call.k.dtype)) + " keys");
}

void expect_int32(std::string_view array, const IntArray& values, Severity severity,
                  Report& report) {
  if (values.meta.dtype == Dtype::int32) return;
  report.add(severity, std::string(array) + ".dtype", std::string(name(values.meta.dtype)),
             "int32");
}

void index_arrays_are_int32(const UnifiedCall& call, const Truth&, Report& report) {
  // The Triton kernel takes any integer type; its ASM sibling for short verify does not.
  expect_int32("cu_seqlens_q", call.cu_seqlens_q, Severity::policy, report);
  expect_int32("block_table", call.block_table, Severity::policy, report);
}

void index_arrays_are_int32(const MlaDecodeCall& call, const Truth&, Report& report) {
  expect_int32("qo_indptr", call.qo_indptr, Severity::wrong, report);
  expect_int32("kv_indptr", call.kv_indptr, Severity::wrong, report);
  expect_int32("kv_indices", call.kv_indices, Severity::wrong, report);
  expect_int32("kv_last_page_lens", call.kv_last_page_lens, Severity::wrong, report);
}

void index_arrays_are_int32(const BatchPrefillCall& call, const Truth&, Report& report) {
  expect_int32("cu_seqlens_q", call.cu_seqlens_q, Severity::fault, report);
  expect_int32("kv_indptr", call.kv_indptr, Severity::fault, report);
  expect_int32("kv_page_indices", call.kv_page_indices, Severity::fault, report);
}

void index_arrays_are_int32(const PagedRaggedCall& call, const Truth&, Report& report) {
  expect_int32("kv_indptr", call.kv_indptr, Severity::wrong, report);
  expect_int32("kv_page_indices", call.kv_page_indices, Severity::wrong, report);
  if (call.block_size > 1) {
    expect_int32("kv_last_page_lens", call.kv_last_page_lens, Severity::wrong, report);
  }
}

void index_arrays_are_int32(const VllmCpuCall& call, const Truth&, Report& report) {
  expect_int32("query_start_loc", call.query_start_loc, Severity::fault, report);
  expect_int32("seq_lens", call.seq_lens, Severity::fault, report);
  expect_int32("block_table", call.block_table, Severity::fault, report);
}

void expect_dense(std::string_view array, const IntArray& values, Report& report) {
  const std::vector<std::int64_t>& strides = values.meta.strides;
  if (strides.empty() || strides.back() == 1 || values.meta.shape.back() <= 1) return;
  report.add(std::string(array) + ".stride(-1)", std::to_string(strides.back()), "1");
}

void index_arrays_are_dense(const UnifiedCall& call, const Truth&, Report& report) {
  expect_dense("cu_seqlens_q", call.cu_seqlens_q, report);
  expect_dense("seqused_k", call.seqused_k, report);
  expect_dense("block_table", call.block_table, report);
}

void index_arrays_are_dense(const MlaDecodeCall& call, const Truth&, Report& report) {
  expect_dense("qo_indptr", call.qo_indptr, report);
  expect_dense("kv_indptr", call.kv_indptr, report);
  expect_dense("kv_indices", call.kv_indices, report);
  expect_dense("kv_last_page_lens", call.kv_last_page_lens, report);
  for (const auto& [name, list] : named_work_lists(call)) {
    if (list) expect_dense(name, *list, report);
  }
}

void index_arrays_are_dense(const BatchPrefillCall& call, const Truth&, Report& report) {
  expect_dense("cu_seqlens_q", call.cu_seqlens_q, report);
  expect_dense("kv_indptr", call.kv_indptr, report);
  expect_dense("kv_page_indices", call.kv_page_indices, report);
}

void index_arrays_are_dense(const PagedRaggedCall& call, const Truth&, Report& report) {
  expect_dense("kv_indptr", call.kv_indptr, report);
  expect_dense("kv_page_indices", call.kv_page_indices, report);
  expect_dense("kv_last_page_lens", call.kv_last_page_lens, report);
}

void index_arrays_are_dense(const LegacyExtendCall& call, const Truth&, Report& report) {
  expect_dense("qo_indptr", call.qo_indptr, report);
  expect_dense("kv_indptr", call.kv_indptr, report);
  expect_dense("kv_indices", call.kv_indices, report);
  if (call.custom_mask) expect_dense("custom_mask", *call.custom_mask, report);
  if (call.mask_indptr) expect_dense("mask_indptr", *call.mask_indptr, report);
}

void index_arrays_are_dense(const VllmCpuCall& call, const Truth&, Report& report) {
  expect_dense("query_start_loc", call.query_start_loc, report);
  expect_dense("seq_lens", call.seq_lens, report);
  expect_dense("block_table", call.block_table, report);
}

constexpr Rule rules[] = {
    {.id = "dtypes.are_the_layers",
     .says = "q, the caches and out have the layer's element types",
     .why = "bytes of another type are numbers all the same",
     .source = "vllm-project/vllm#46997",
     .unified = are_the_layers,
     .mla_decode = are_the_layers,
     .batch_prefill = are_the_layers,
     .paged_ragged = are_the_layers,
     .legacy_extend = are_the_layers,
     .vllm_cpu = are_the_layers},
    {.id = "dtypes.q_is_not_narrower_than_the_cache",
     .says = "q is not fp8 over a 16-bit cache",
     .why = "unified casts K and V to q's type after loading them",
     .source = "ROCm/aiter aiter/ops/triton/_triton_kernels/attention/unified_attention.py: "
               "K.to(Q.dtype)",
     .unified = q_is_not_narrower},
    {.id = "dtypes.index_arrays_are_int32",
     .says = "offsets, page ids and slots are int32",
     .why = "raw-pointer kernels read int64 entries as pairs (value, 0); policy for unified, whose "
            "ASM sibling only asks for it; vllm_cpu refuses the call",
     .source = "flashinfer-ai/flashinfer#1654",
     .unified = index_arrays_are_int32,
     .mla_decode = index_arrays_are_int32,
     .batch_prefill = index_arrays_are_int32,
     .paged_ragged = index_arrays_are_int32,
     .vllm_cpu = index_arrays_are_int32},
    {.id = "dtypes.index_arrays_are_dense",
     .says = "the last stride of every metadata array is 1",
     .why = "entries are addressed as pointer + i",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py: block_table.stride(0)",
     .unified = index_arrays_are_dense,
     .mla_decode = index_arrays_are_dense,
     .batch_prefill = index_arrays_are_dense,
     .paged_ragged = index_arrays_are_dense,
     .legacy_extend = index_arrays_are_dense,
     .vllm_cpu = index_arrays_are_dense},
};

}  // namespace

std::span<const Rule> dtypes_rules() { return rules; }

}  // namespace attest
