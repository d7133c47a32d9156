#include "contracts/rules/cpu_features.hpp"

#include <optional>
#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

template <class CallType>
void sinks_are_the_layers(const CallType& c, const Truth& truth, Report& report) {
  const Model& m = truth.problem.model;
  const bool fits = !c.sinks || (c.sinks->shape.size() == 1 && c.sinks->size(0) == m.num_q_heads);
  if (c.sinks.has_value() == m.sinks && fits) return;
  report.add(fits ? Severity::wrong : Severity::fault, "sinks",
             c.sinks ? shape_text(*c.sinks) : "absent",
             m.sinks ? "(" + std::to_string(m.num_q_heads) + "), one for each query head"
                     : "absent, the layer has none");
}

template <class CallType>
void cross_is_the_layers(const CallType& c, const Truth& truth, Report& report) {
  const bool wanted = truth.problem.model.cross_attention;
  if (c.is_cross_attn == wanted) return;
  report.add("is_cross_attn", c.is_cross_attn ? "true" : "false", wanted ? "true" : "false");
}

template <class CallType>
void encoder_lens_are_right(const CallType& c, const Truth& truth, Report& report) {
  if (c.encoder_lens && !recorded(*c.encoder_lens, "encoder_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    const std::int64_t got = c.encoder_lens ? (*c.encoder_lens)[i] : 0;
    if (!r.live || got == r.encoder_tokens) continue;
    report.add(entry("encoder_lens", static_cast<std::int64_t>(i)),
               c.encoder_lens ? std::to_string(got) : "absent",
               std::to_string(r.encoder_tokens) + " encoder tokens");
  }
}

void pair_is_whole(std::string_view k, std::string_view v, bool has_k, bool has_v, bool needed,
                   Report& report) {
  if (has_k == has_v && (has_k || !needed)) return;
  report.add(std::string(has_k ? v : k), "absent",
             has_k == has_v
                 ? "the new tokens' keys"
                 : "both of " + std::string(k) + " and " + std::string(v) + ", or neither");
}

void extend_pair(const ExtendCall& c, const Truth&, Report& report) {
  pair_is_whole("k_extend", "v_extend", c.k_extend.has_value(), c.v_extend.has_value(),
                !c.is_cross_attn, report);
}

void decode_pair(const DecodeCall& c, const Truth&, Report& report) {
  pair_is_whole("key", "value", c.key.has_value(), c.value.has_value(), false, report);
}

constexpr Rule rules[] = {
    {.id = "sinks.has_one_logit_per_query_head",
     .says = "sinks are passed exactly where the layer has them, one for each query head",
     .why = "without them every row's weights are too large",
     .source = "kekzl/imp#1346",
     .severity = Severity::wrong,
     .extend = sinks_are_the_layers<ExtendCall>,
     .decode = sinks_are_the_layers<DecodeCall>},
    {.id = "is_cross_attn.is_the_layers_kind",
     .says = "is_cross_attn says whether the layer attends the encoder",
     .why = "the row's keys are the encoder's or the text's",
     .source = "sgl-project/sglang intel_amx_backend.py, layer.is_cross_attention",
     .severity = Severity::wrong,
     .extend = cross_is_the_layers<ExtendCall>,
     .decode = cross_is_the_layers<DecodeCall>},
    {.id = "encoder_lens.counts_the_encoder_tokens",
     .says = "encoder_lens[i] is the number of encoder tokens in front of the text",
     .why = "text keys are read that many columns further on; cross attention without it takes "
            "seq_lens for the encoder's length, in silence",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp and decode.cpp, encoder_lens",
     .severity = Severity::wrong,
     .extend = encoder_lens_are_right<ExtendCall>,
     .decode = encoder_lens_are_right<DecodeCall>},
    {.id = "key.comes_with_its_value",
     .says = "new keys and values come together, and always in self-attention's extend",
     .why = "extend reads new tokens from them, never from the pool, and raises without",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, k_extend",
     .severity = Severity::fault,
     .extend = extend_pair,
     .decode = decode_pair},
};

}  // namespace

std::span<const Rule> cpu_features_rules() { return rules; }

}  // namespace attest
