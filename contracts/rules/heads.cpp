#include "contracts/rules/heads.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/pool_view.hpp"

namespace attest {
namespace {

void divide_evenly(std::string_view tensor, std::int64_t q_heads, std::int64_t kv_heads,
                   Report& report) {
  if (kv_heads >= 1 && q_heads >= kv_heads && q_heads % kv_heads == 0) return;
  report.add(std::string(tensor) + ".shape[1]", std::to_string(q_heads),
             "a multiple of the " + std::to_string(kv_heads) + " kv heads");
}

void divide_evenly(const UnifiedCall& call, const Truth&, Report& report) {
  divide_evenly("q", call.q.size(1), call.k.size(2), report);
}

void divide_evenly(const BatchPrefillCall& call, const Truth&, Report& report) {
  const std::int64_t q_heads = call.q.size(1);
  const std::int64_t kv_heads = call.k.size(1);
  if (q_heads >= kv_heads && q_heads % kv_heads == 0) return;
  report.add(Severity::fault, "q.shape[1]", std::to_string(q_heads),
             "a multiple of the " + std::to_string(kv_heads) + " kv heads: the host code refuses");
}

void divide_evenly(const PagedRaggedCall& call, const Truth&, Report& report) {
  divide_evenly("query", call.query.size(1), call.key_cache.size(2), report);
}

void divide_evenly(const LegacyExtendCall& call, const Truth&, Report& report) {
  divide_evenly("q_extend", call.q_extend.size(1), call.k_extend.size(1), report);
}

void divide_evenly(const VllmCpuCall& call, const Truth&, Report& report) {
  divide_evenly("query", call.query.size(1), call.key_cache.size(1), report);
}

void expect_q_heads(std::string_view tensor, const TensorMeta& meta, const Model& m,
                    Report& report) {
  if (meta.size(1) == m.num_q_heads) return;
  report.add(std::string(tensor) + ".shape[1]", std::to_string(meta.size(1)),
             std::to_string(m.num_q_heads) + ", the layer's q heads");
}

void expect_kv_heads(std::string_view tensor, const TensorMeta& meta, const Model& m,
                     Report& report, std::size_t dim = 2) {
  const std::int64_t heads = distinct_heads(meta, dim);
  if (heads == m.num_kv_heads) return;
  report.add(std::string(tensor) + ".shape[" + std::to_string(dim) + "]",
             std::to_string(meta.size(dim)) +
                 (heads == meta.size(dim) ? "" : " with stride 0, which is one head"),
             std::to_string(m.num_kv_heads) + ", the layer's kv heads");
}

void are_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("q", call.q, m, report);
  expect_q_heads("out", call.out, m, report);
  expect_kv_heads("k", call.k, m, report);
  expect_kv_heads("v", call.v, m, report);
}

void are_the_layers(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("q", call.q, m, report);
  expect_q_heads("o", call.o, m, report);
  expect_kv_heads("kv_buffer", call.kv_buffer, m, report);
}

void are_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("q", call.q, m, report);
  expect_kv_heads("k", call.k, m, report, 1);
  expect_kv_heads("v", call.v, m, report, 1);
}

void are_the_layers(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("query", call.query, m, report);
  expect_q_heads("out", call.out, m, report);
  expect_kv_heads("key_cache", call.key_cache, m, report);
  expect_kv_heads("value_cache", call.value_cache, m, report);
}

void are_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("q_extend", call.q_extend, m, report);
  expect_q_heads("o_extend", call.o_extend, m, report);
  expect_kv_heads("k_extend", call.k_extend, m, report, 1);
  expect_kv_heads("v_extend", call.v_extend, m, report, 1);
  expect_kv_heads("k_buffer", call.k_buffer, m, report, 1);
  expect_kv_heads("v_buffer", call.v_buffer, m, report, 1);
}

void are_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_q_heads("query", call.query, m, report);
  expect_q_heads("output", call.output, m, report);
  expect_kv_heads("key_cache", call.key_cache, m, report, 1);
  expect_kv_heads("value_cache", call.value_cache, m, report, 1);
}

void are_not_expanded(const UnifiedCall& call, const Truth&, Report& report) {
  const auto expect_real = [&](std::string_view tensor, const TensorMeta& meta) {
    if (distinct_heads(meta, 2) == meta.size(2)) return;
    report.add(std::string(tensor) + ".stride(2)",
               "0 over " + std::to_string(meta.size(2)) + " heads",
               "the one real head: its keys are loaded once for " + std::to_string(call.q.size(1)) +
                   " q heads");
  };
  expect_real("k", call.k);
  expect_real("v", call.v);
}

void fit_the_kernels(const MlaDecodeCall& call, const Truth&, Report& report) {
  const std::int64_t heads = call.q.size(1);
  if (heads >= 8 && heads <= 128 && heads % 8 == 0) return;
  report.add("q.shape[1]", std::to_string(heads), "a multiple of 8 up to 128");
}

constexpr Rule rules[] = {
    {.id = "heads.divide_evenly",
     .says = "the number of q heads is a multiple of the number of kv heads",
     .why = "with a group of q heads rounded down, the heads past the last group are never written",
     .source = "fla-org/flash-linear-attention#1029",
     .unified = divide_evenly,
     .batch_prefill = divide_evenly,
     .paged_ragged = divide_evenly,
     .legacy_extend = divide_evenly,
     .vllm_cpu = divide_evenly},
    {.id = "heads.are_the_layers",
     .says = "q, out and the caches have the layer's heads",
     .why = "another head count pairs q heads with other kv heads",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py: num_queries_per_kv",
     .unified = are_the_layers,
     .mla_decode = are_the_layers,
     .batch_prefill = are_the_layers,
     .paged_ragged = are_the_layers,
     .legacy_extend = are_the_layers,
     .vllm_cpu = are_the_layers},
    {.id = "heads.are_not_expanded",
     .says = "K and V keep their real heads, none expanded over the q heads with stride 0",
     .why = "the kernel then sees one q head per kv head and loads the same keys once for each: "
            "right numbers at several times the traffic",
     .source = "sgl-project/sglang#30105",
     .severity = Severity::slow,
     .unified = are_not_expanded},
    {.id = "heads.fit_the_mla_kernels",
     .says = "an MLA call has a head count that kernels exist for",
     .why = "the metadata builder requires multiples of 8 and the reduction is instantiated up to "
            "128; frameworks repeat or pad smaller counts",
     .source = "ROCm/aiter aiter/mla.py, csrc/kernels/mla/reduce.cu",
     .severity = Severity::policy,
     .mla_decode = fit_the_kernels},
};

}  // namespace

std::span<const Rule> heads_rules() { return rules; }

}  // namespace attest
