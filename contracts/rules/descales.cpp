#include "contracts/rules/descales.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

void come_together(const UnifiedCall& call, const Truth&, Report& report) {
  if (call.k_descale.has_value() == call.v_descale.has_value()) return;
  report.add(call.k_descale ? "v_descale" : "k_descale", "absent",
             "present, or both absent: the 2d form applies neither alone, the 3d form does");
}

void come_together(const MlaDecodeCall& call, const Truth&, Report& report) {
  if (!is_fp8(call.q.dtype) || (call.q_scale && call.kv_scale)) return;
  report.add(Severity::fault, call.q_scale ? "kv_scale" : "q_scale", "absent",
             "present: the host code aborts without both for fp8 q");
}

void come_together(const BatchPrefillCall& call, const Truth&, Report& report) {
  const bool any = call.q_descale || call.k_descale || call.v_descale;
  if (!any || (call.q_descale && call.k_descale && call.v_descale)) return;
  report.add(Severity::fault,
             !call.q_descale   ? "q_descale"
             : !call.k_descale ? "k_descale"
                               : "v_descale",
             "absent", "present, or all three absent: the host code refuses");
}

void expect_descale(std::string_view argument, const std::optional<TensorMeta>& got,
                    const std::optional<double>& expected, Report& report) {
  if (!got) {
    if (expected && *expected != 1) {
      report.add(std::string(argument), "absent", number_text(*expected) + ", the layer's");
    }
    return;
  }
  // One element, or one expanded with stride 0 (vLLM, FlashAttention: (batch, heads)).
  bool one = got->strides.size() == got->shape.size();
  for (std::size_t d = 0; one && d < got->shape.size(); ++d) {
    one = got->shape[d] == 1 || (got->shape[d] > 1 && got->strides[d] == 0);
  }
  if (got->dtype != Dtype::f32 || !one) {
    report.add(std::string(argument), std::string(name(got->dtype)) + " " + shape_text(*got),
               "one f32");
  } else if (!expected) {
    report.add(Severity::policy, std::string(argument), "present",
               "absent, or 1: the layer has none");
  }
}

template <class CallType>
void qkv_are_the_layers(const CallType& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_descale("q_descale", call.q_descale, m.q_descale, report);
  expect_descale("k_descale", call.k_descale, m.k_descale, report);
  expect_descale("v_descale", call.v_descale, m.v_descale, report);
}

void are_the_layers(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_descale("q_scale", call.q_scale, m.q_descale, report);
  expect_descale("kv_scale", call.kv_scale, m.k_descale, report);
}

void are_the_layers(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_descale("k_scale", call.k_scale, m.k_descale, report);
  expect_descale("v_scale", call.v_scale, m.v_descale, report);
}

void expect_factor(std::string_view argument, double got, const std::optional<double>& expected,
                   Report& report) {
  if (got == expected.value_or(1)) return;
  report.add(std::string(argument), number_text(got),
             number_text(expected.value_or(1)) + ", the layer's");
}

void are_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  expect_factor("k_scale", call.k_scale, m.k_descale, report);
  expect_factor("v_scale", call.v_scale, m.v_descale, report);
}

void are_the_layers(const VllmCpuCall&, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  for (const auto& [name, factor] :
       {std::pair("q_descale", m.q_descale), {"k_scale", m.k_descale}, {"v_scale", m.v_descale}}) {
    if (factor.value_or(1) == 1) continue;
    report.add("the call", std::string("without a ") + name + " that is read",
               number_text(*factor) + ", the layer's: only an fp8 cache has factors");
  }
}

constexpr Rule rules[] = {
    {.id = "descales.come_together",
     .says = "k_descale and v_descale come together; fp8 q comes with q_scale and kv_scale",
     .why = "one form of the kernel ignores a lone one, the other applies it; MLA aborts",
     .source = "ROCm/aiter aiter/ops/triton/_triton_kernels/attention/unified_attention.py; "
               "sgl-project/sglang#19935",
     .unified = come_together,
     .mla_decode = come_together,
     .batch_prefill = come_together},
    {.id = "descales.are_the_layers",
     .says = "every descale of the layer is passed as one f32, and no other",
     .why = "stored fp8 codes are not values: scores and outputs are off by the factor",
     .source = "flashinfer-ai/flashinfer#1023; sgl-project/sglang#26852",
     .unified = qkv_are_the_layers<UnifiedCall>,
     .mla_decode = are_the_layers,
     .batch_prefill = qkv_are_the_layers<BatchPrefillCall>,
     .paged_ragged = are_the_layers,
     .legacy_extend = are_the_layers,
     .vllm_cpu = are_the_layers},
};

}  // namespace

std::span<const Rule> descales_rules() { return rules; }

}  // namespace attest
