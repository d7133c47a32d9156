#include "contracts/rules/scale_and_features.hpp"

#include <cmath>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

/// Equal up to the float32 a framework may have rounded it to.
bool same(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

void expect_number(std::string_view argument, double got, double expected, Report& report) {
  if (same(got, expected)) return;
  report.add(std::string(argument), number_text(got), number_text(expected) + ", the layer's");
}

void scale_is_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  expect_number("softmax_scale", call.softmax_scale, truth.problem.model.softmax_scale, report);
}

void scale_is_the_layers(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  expect_number("sm_scale", call.sm_scale, truth.problem.model.softmax_scale, report);
}

void expect_scale(std::string_view argument, const std::optional<double>& got,
                  std::int64_t head_dim, const Truth& truth, Report& report) {
  const double scale = truth.problem.model.softmax_scale;
  if (got) {
    expect_number(argument, *got, scale, report);
    return;
  }
  const double standard = 1 / std::sqrt(static_cast<double>(head_dim));
  if (same(standard, scale)) return;
  report.add(std::string(argument), "absent, so " + number_text(standard),
             number_text(scale) + ", the layer's");
}

void scale_is_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_scale("softmax_scale", call.softmax_scale, call.q.size(2), truth, report);
}

void scale_is_the_layers(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  expect_number("scale", call.scale, truth.problem.model.softmax_scale, report);
}

void scale_is_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_scale("sm_scale", call.sm_scale, call.q_extend.size(2), truth, report);
}

void scale_is_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  expect_number("scale", call.scale, truth.problem.model.softmax_scale, report);
}

void expect_cap(std::string_view argument, double got, const Truth& truth, Report& report) {
  const double softcap = truth.problem.model.softcap;
  if (softcap == 0 && got <= 0) return;  // both off
  expect_number(argument, got, softcap, report);
}

void softcap_is_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  expect_cap("softcap", call.softcap, truth, report);
}

void softcap_is_the_layers(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  if (call.logit_cap > 0) {
    report.add(Severity::fault, "logit_cap", number_text(call.logit_cap),
               "0 or less: the kernel has no cap");
  } else if (truth.problem.model.softcap > 0) {
    report.add("logit_cap", number_text(call.logit_cap),
               number_text(truth.problem.model.softcap) + ", which this kernel cannot do");
  }
}

void softcap_is_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_cap("logits_soft_cap", call.logits_soft_cap, truth, report);
}

void softcap_is_the_layers(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  expect_cap("logits_soft_cap", call.logits_soft_cap, truth, report);
}

void softcap_is_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_cap("logit_cap", call.logit_cap, truth, report);
}

void softcap_is_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  expect_cap("softcap", call.softcap, truth, report);
}

void causal_is_set(const UnifiedCall& call, const Truth&, Report& report) {
  if (!call.causal) report.add("causal", "false", "true: the kernel asserts it");
}

template <class CallType>
void causal_is_set(const CallType& call, const Truth& truth, Report& report) {
  // One row a request is the last one: it sees every key either way.
  if (call.causal || truth.problem.max_new_tokens() <= 1) return;
  report.add(Severity::wrong, "causal", "false", "true: a row must not see later tokens");
}

void bias_is_absent(const UnifiedCall& call, const Truth& truth, Report& report) {
  if (!call.qq_bias) return;
  report.add("qq_bias", shape_text(*call.qq_bias),
             "absent: one matrix is added for all " +
                 std::to_string(truth.problem.requests.size()) + " requests");
}

constexpr Rule rules[] = {
    {.id = "softmax_scale.is_the_layers",
     .says = "the scale is the layer's own",
     .why = "1/sqrt(head_dim) in its place changes every weight of layers that scale otherwise",
     .source = "sgl-project/sglang#38754",
     .unified = scale_is_the_layers,
     .mla_decode = scale_is_the_layers,
     .batch_prefill = scale_is_the_layers,
     .paged_ragged = scale_is_the_layers,
     .legacy_extend = scale_is_the_layers,
     .vllm_cpu = scale_is_the_layers},
    {.id = "softcap.is_the_layers",
     .says = "the logit cap is the layer's own, off where the layer has none",
     .why = "a cap lost on one path makes decode and verify disagree",
     .source = "sgl-project/sglang#38754; vllm-project/vllm-metal#665",
     .unified = softcap_is_the_layers,
     .mla_decode = softcap_is_the_layers,
     .batch_prefill = softcap_is_the_layers,
     .paged_ragged = softcap_is_the_layers,
     .legacy_extend = softcap_is_the_layers,
     .vllm_cpu = softcap_is_the_layers},
    {.id = "causal.is_set",
     .says = "causal is true",
     .why = "the host code asserts it: drafts must not see later drafts",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py; "
               "facebookresearch/xformers#1185",
     .severity = Severity::fault,
     .unified = causal_is_set,
     .batch_prefill = causal_is_set<BatchPrefillCall>,
     .vllm_cpu = causal_is_set<VllmCpuCall>},
    {.id = "qq_bias.is_absent",
     .says = "no bias over the new tokens is passed",
     .why = "one matrix serves all requests, can only hide keys, and padded rows read past it",
     .source = "ROCm/aiter aiter/ops/triton/_triton_kernels/attention/unified_attention.py: "
               "qq_bias",
     .severity = Severity::policy,
     .unified = bias_is_absent},
};

}  // namespace

std::span<const Rule> scale_and_features_rules() { return rules; }

}  // namespace attest
