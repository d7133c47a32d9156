#include "contracts/rules/scale_and_features.hpp"

#include <cmath>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures/refusals.hpp"

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

void causal_is_set(const UnifiedCall& call, const Truth&, Report& report) {
  if (!call.causal) report.add("causal", "false", "true: the kernel asserts it");
}

void causal_is_set(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  // One row a request is the last one: it sees every key either way.
  if (call.causal || truth.problem.max_new_tokens() <= 1) return;
  report.add(Severity::wrong, "causal", "false", "true: a row must not see later tokens");
}

std::string window_text(std::int64_t distance) {
  return distance < 0 ? "no window" : "distances up to " + std::to_string(distance);
}

void window_is_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  const std::int64_t wanted = truth.problem.model.window.value_or(0) - 1;
  const std::int64_t got = call.window_size[0] < 0 ? -1 : call.window_size[0];
  if (got == wanted) return;
  // SGLang's own layers mean distance <= s and its unified call sites pass s - 1: whether the
  // model's window is the one or the other is the open question, so it is not for us to reject.
  const bool one_short = wanted > 0 && got == wanted - 1;
  report.add(one_short ? Severity::policy : Severity::wrong, "window_size[0]",
             std::to_string(call.window_size[0]) + " (" + window_text(got) + ")",
             std::to_string(wanted) + " (" + window_text(wanted) + ")");
}

template <class CallType>
void window_has_no_argument(const CallType&, const Truth& truth, Report& report) {
  if (!truth.problem.model.window) return;
  report.add("the call", "without a window argument",
             "a kernel with one: the layer's window is " +
                 std::to_string(*truth.problem.model.window) + " keys");
}

void expect_distance(std::string_view argument, std::int64_t distance, const Truth& truth,
                     Report& report) {
  const std::int64_t wanted = truth.problem.model.window.value_or(0) - 1;
  const std::int64_t got = distance < 0 ? -1 : distance;
  if (got == wanted) return;
  report.add(std::string(argument), std::to_string(distance) + " (" + window_text(got) + ")",
             std::to_string(wanted) + " (" + window_text(wanted) + ")");
}

void window_is_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_distance("window_size[0]", call.window_size[0], truth, report);
}

void window_is_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_distance("sliding_window_size", call.sliding_window_size, truth, report);
}

void expect_sinks(std::string_view argument, const std::optional<TensorMeta>& sinks, const Model& m,
                  Report& report) {
  if (!sinks) {
    if (m.sinks) report.add(std::string(argument), "absent", "one logit per q head");
    return;
  }
  if (!m.sinks) {
    report.add(std::string(argument), shape_text(*sinks), "absent: the layer has none");
  } else if (sinks->shape != std::vector<std::int64_t>{m.num_q_heads}) {
    report.add(Severity::fault, std::string(argument), shape_text(*sinks),
               "(" + std::to_string(m.num_q_heads) + "), one logit per q head");
  }
}

void sinks_are_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  expect_sinks("sinks", call.sinks, truth.problem.model, report);
}

void sinks_are_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_sinks("sink_ptr", call.sink_ptr, truth.problem.model, report);
}

void sinks_are_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_sinks("sinks", call.sinks, truth.problem.model, report);
  if (call.sinks && call.sinks->dtype != truth.problem.model.q_dtype) {
    report.add(
        Severity::policy, "sinks.dtype", std::string(name(call.sinks->dtype)),
        std::string(name(truth.problem.model.q_dtype)) + ", q's: their bits are the layer's");
  }
}

template <class CallType>
void sinks_have_no_argument(const CallType&, const Truth& truth, Report& report) {
  if (truth.problem.model.sinks) {
    report.add("the call", "without a sinks argument", "a kernel with one: the layer has sinks");
  }
}

void drafts_are_chains(const Truth& truth, std::string_view got, Report& report) {
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (!r.live || is_chain(r)) continue;
    report.add("the mask of request " + std::to_string(i), std::string(got),
               "its draft tree: token t sees the prefix, itself and its ancestors only");
  }
}

void drafts_are_chains(const UnifiedCall& call, const Truth& truth, Report& report) {
  drafts_are_chains(
      truth, call.qq_bias ? "one bias for all requests over the causal order" : "the causal order",
      report);
}

void drafts_are_chains(const MlaDecodeCall&, const Truth& truth, Report& report) {
  drafts_are_chains(truth, "the causal order", report);
}

void drafts_are_chains(const BatchPrefillCall&, const Truth& truth, Report& report) {
  drafts_are_chains(truth, "the causal order", report);
}

template <class CallType>
void text_attends_to_itself(const CallType&, const Truth& truth, Report& report) {
  if (const auto reason = refuses_cross_attention(truth.problem, "the kernel")) {
    report.add("the call", "causal over the request's own text", *reason);
  }
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
     .legacy_extend = scale_is_the_layers},
    {.id = "softcap.is_the_layers",
     .says = "the logit cap is the layer's own, off where the layer has none",
     .why = "a cap lost on one path makes decode and verify disagree",
     .source = "sgl-project/sglang#38754; vllm-project/vllm-metal#665",
     .unified = softcap_is_the_layers,
     .mla_decode = softcap_is_the_layers,
     .batch_prefill = softcap_is_the_layers,
     .paged_ragged = softcap_is_the_layers,
     .legacy_extend = softcap_is_the_layers},
    {.id = "causal.is_set",
     .says = "causal is true",
     .why = "the host code asserts it: drafts must not see later drafts",
     .source = "ROCm/aiter aiter/ops/triton/attention/unified_attention.py; "
               "facebookresearch/xformers#1185",
     .severity = Severity::fault,
     .unified = causal_is_set,
     .batch_prefill = causal_is_set},
    {.id = "window.is_the_layers",
     .says = "window_size[0] (sliding_window_size) is the layer's window minus 1, -1 without one",
     .why = "keys are lost or added at the far edge. One key short is the open question between "
            "SGLang's paths (distance <= s against s - 1), therefore policy; anything else rejects",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py; "
               "sgl-project/sglang#34273; sgl-project/sglang#38756",
     .unified = window_is_the_layers,
     .mla_decode = window_has_no_argument<MlaDecodeCall>,
     .batch_prefill = window_is_the_layers,
     .paged_ragged = window_has_no_argument<PagedRaggedCall>,
     .legacy_extend = window_is_the_layers},
    {.id = "sinks.are_the_layers",
     .says = "sinks are passed, one per q head, exactly when the layer has them",
     .why = "the sink's share of the softmax goes to the keys",
     .source = "kekzl/imp#1346",
     .unified = sinks_are_the_layers,
     .mla_decode = sinks_have_no_argument<MlaDecodeCall>,
     .batch_prefill = sinks_are_the_layers,
     .paged_ragged = sinks_have_no_argument<PagedRaggedCall>,
     .legacy_extend = sinks_are_the_layers},
    {.id = "draft_tree.is_a_chain",
     .says = "the drafts of a call without a tree mask are chains",
     .why = "in causal order a token of one branch sees the other branches",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py: unified "
               "verify needs topk 1",
     .unified = drafts_are_chains,
     .mla_decode = drafts_are_chains,
     .batch_prefill = drafts_are_chains},
    {.id = "cross_attention.has_a_kernel",
     .says = "cross attention and encoder tokens do not reach a causal kernel",
     .why = "it attends to the text instead, with a causal mask",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py",
     .unified = text_attends_to_itself<UnifiedCall>,
     .mla_decode = text_attends_to_itself<MlaDecodeCall>,
     .batch_prefill = text_attends_to_itself<BatchPrefillCall>,
     .paged_ragged = text_attends_to_itself<PagedRaggedCall>,
     .legacy_extend = text_attends_to_itself<LegacyExtendCall>},
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
