#include "contracts/rules/visibility.hpp"

#include <algorithm>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

std::string window_text(std::int64_t distance) {
  return distance < 0 ? "no window" : "distances up to " + std::to_string(distance);
}

/// `one_short`: what a window of one key less is.
void expect_distance(std::string_view argument, std::int64_t distance, const Truth& truth,
                     Report& report, Severity one_short = Severity::wrong) {
  const std::int64_t wanted = truth.problem.model.window.value_or(0) - 1;
  const std::int64_t got = distance < 0 ? -1 : distance;
  if (got == wanted) return;
  report.add(wanted > 0 && got == wanted - 1 ? one_short : Severity::wrong, std::string(argument),
             std::to_string(distance) + " (" + window_text(got) + ")",
             std::to_string(wanted) + " (" + window_text(wanted) + ")");
}

void window_is_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  // SGLang's own layers mean distance <= s and its unified call sites pass s - 1: whether the
  // model's window is the one or the other is the open question, so it is not for us to reject.
  expect_distance("window_size[0]", call.window_size[0], truth, report, Severity::policy);
}

template <class CallType>
void window_has_no_argument(const CallType&, const Truth& truth, Report& report) {
  if (!truth.problem.model.window) return;
  report.add("the call", "without a window argument",
             "a kernel with one: the layer's window is " +
                 std::to_string(*truth.problem.model.window) + " keys");
}

void window_is_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_distance("window_size[0]", call.window_size[0], truth, report);
}

void window_is_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_distance("sliding_window_size", call.sliding_window_size, truth, report);
}

void window_is_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  const std::int64_t wanted = truth.problem.model.window.value_or(0);
  if (std::max<std::int64_t>(0, call.sliding_window) == wanted) return;
  report.add("sliding_window", std::to_string(call.sliding_window),
             wanted == 0 ? "-1: the layer has no window"
                         : std::to_string(wanted) + " keys, the query's own included");
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

/// A type of fewer bits holds other logits than the layer's.
void expect_sink_bits(std::string_view argument, const std::optional<TensorMeta>& sinks,
                      const Model& m, Report& report) {
  const Dtype layers = is_fp8(m.q_dtype) ? Dtype::f32 : m.q_dtype;
  if (!sinks || sinks->dtype == layers || sinks->dtype == Dtype::f32) return;
  report.add(Severity::policy, std::string(argument) + ".dtype", std::string(name(sinks->dtype)),
             std::string(name(layers)) + " or f32: their bits are the layer's");
}

void sinks_are_the_layers(const UnifiedCall& call, const Truth& truth, Report& report) {
  expect_sinks("sinks", call.sinks, truth.problem.model, report);
  expect_sink_bits("sinks", call.sinks, truth.problem.model, report);
}

void sinks_are_the_layers(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  expect_sinks("sink_ptr", call.sink_ptr, truth.problem.model, report);
  expect_sink_bits("sink_ptr", call.sink_ptr, truth.problem.model, report);
}

void sinks_are_the_layers(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  expect_sinks("sinks", call.sinks, truth.problem.model, report);
  if (call.sinks && call.sinks->dtype != truth.problem.model.q_dtype) {
    report.add(
        Severity::policy, "sinks.dtype", std::string(name(call.sinks->dtype)),
        std::string(name(truth.problem.model.q_dtype)) + ", q's: their bits are the layer's");
  }
}

void sinks_are_the_layers(const VllmCpuCall& call, const Truth& truth, Report& report) {
  expect_sinks("s_aux", call.s_aux, truth.problem.model, report);
  const bool read =
      !call.s_aux || call.s_aux->dtype == Dtype::bf16 || call.s_aux->dtype == Dtype::f32;
  if (!read) {
    report.add(Severity::fault, "s_aux.dtype", std::string(name(call.s_aux->dtype)),
               "bf16 or f32: the host code refuses others");
    return;
  }
  expect_sink_bits("s_aux", call.s_aux, truth.problem.model, report);
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

void drafts_are_chains(const VllmCpuCall&, const Truth& truth, Report& report) {
  drafts_are_chains(truth, "the causal order", report);
}

template <class CallType>
void text_attends_to_itself(const CallType&, const Truth& truth, Report& report) {
  if (const auto reason = refuses_cross_attention(truth.problem, "the kernel")) {
    report.add("the call", "causal over the request's own text", *reason);
  }
}

constexpr Rule rules[] = {
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
     .legacy_extend = window_is_the_layers,
     .vllm_cpu = window_is_the_layers},
    {.id = "sinks.are_the_layers",
     .says = "sinks are passed, one per q head, exactly when the layer has them",
     .why = "the sink's share of the softmax goes to the keys",
     .source = "kekzl/imp#1346",
     .unified = sinks_are_the_layers,
     .mla_decode = sinks_have_no_argument<MlaDecodeCall>,
     .batch_prefill = sinks_are_the_layers,
     .paged_ragged = sinks_have_no_argument<PagedRaggedCall>,
     .legacy_extend = sinks_are_the_layers,
     .vllm_cpu = sinks_are_the_layers},
    {.id = "draft_tree.is_a_chain",
     .says = "the drafts of a call without a tree mask are chains",
     .why = "in causal order a token of one branch sees the other branches",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py: unified "
               "verify needs topk 1",
     .unified = drafts_are_chains,
     .mla_decode = drafts_are_chains,
     .batch_prefill = drafts_are_chains,
     .vllm_cpu = drafts_are_chains},
    {.id = "cross_attention.has_a_kernel",
     .says = "cross attention and encoder tokens do not reach a causal kernel",
     .why = "it attends to the text instead, with a causal mask",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py",
     .unified = text_attends_to_itself<UnifiedCall>,
     .mla_decode = text_attends_to_itself<MlaDecodeCall>,
     .batch_prefill = text_attends_to_itself<BatchPrefillCall>,
     .paged_ragged = text_attends_to_itself<PagedRaggedCall>,
     .legacy_extend = text_attends_to_itself<LegacyExtendCall>,
     .vllm_cpu = text_attends_to_itself<VllmCpuCall>},
};

}  // namespace

std::span<const Rule> visibility_rules() { return rules; }

}  // namespace attest
