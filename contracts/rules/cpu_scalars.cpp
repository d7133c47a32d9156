#include "contracts/rules/cpu_scalars.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/cpu_kernels.hpp"

namespace attest {
namespace {

std::string number(double value) {
  std::ostringstream os;
  os.precision(9);
  os << value;
  return os.str();
}

/// The kernel takes the scale as float: what a float cannot tell apart is the same scale.
bool same_scale(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

template <class CallType>
void scale_is_the_layers(const CallType& c, const Truth& truth, Report& report) {
  const double wanted = truth.problem.model.softmax_scale;
  if (same_scale(c.sm_scale, wanted)) return;
  report.add("sm_scale", number(c.sm_scale), number(wanted) + ", the layer's scaling");
}

template <class CallType>
void cap_is_the_layers(const CallType& c, const Truth& truth, Report& report) {
  const double wanted = truth.problem.model.softcap;
  // 0 and below are both off.
  if (same_scale(std::max(c.logit_cap, 0.0), wanted)) return;
  report.add("logit_cap", number(c.logit_cap), number(wanted) + ", the layer's logit cap");
}

void cap_reaches_the_scores(const ExtendCall& c, const Truth&, Report& report) {
  if (c.logit_cap <= 0) return;
  report.add("logit_cap", number(c.logit_cap), "0: SGLang's kernel takes a cap and ignores it");
}

void cap_is_off_for_mla(const DecodeCall& c, const Truth&, Report& report) {
  if (!takes_mla_path(c) || c.logit_cap == 0) return;
  report.add("logit_cap", number(c.logit_cap), "0 on the MLA path");
}

/// Keys a row sees at most; none = no limit.
std::int64_t reach_of(std::int64_t window) {
  return window > 0 ? window : std::numeric_limits<std::int64_t>::max();
}

template <class CallType>
void window_is_the_layers(const CallType& c, const Truth& truth, Report& report) {
  const std::int64_t wanted = truth.problem.model.window.value_or(0);
  const std::int64_t got = std::max<std::int64_t>(0, c.sliding_window_size);
  if (got == wanted) return;
  std::int64_t longest = 0;
  for (const Request& r : truth.problem.requests) {
    if (r.live) longest = std::max(longest, r.kv_len());
  }
  const bool shows = std::min(reach_of(got), reach_of(wanted)) < longest;
  report.add(shows ? Severity::wrong : Severity::policy, "sliding_window_size",
             std::to_string(c.sliding_window_size),
             wanted == 0 ? "0 or below, the layer has no window"
                         : std::to_string(wanted) +
                               " keys, the query's own included (SGLang's "
                               "layer says " +
                               std::to_string(wanted - 1) + ")");
}

void extend_window_stands_alone(const ExtendCall& c, const Truth&, Report& report) {
  if (c.sliding_window_size <= 0 || !c.tree_mask) return;
  report.add(Severity::fault, "sliding_window_size", std::to_string(c.sliding_window_size),
             "0 together with a tree_mask");
}

void decode_window_stands_alone(const DecodeCall& c, const Truth&, Report& report) {
  if (c.sliding_window_size <= 0) return;
  if (takes_mla_path(c)) {
    report.add("sliding_window_size", std::to_string(c.sliding_window_size),
               "0 on the MLA path, which ignores it");
  } else if (c.encoder_lens) {
    report.add("sliding_window_size", std::to_string(c.sliding_window_size),
               "0 together with encoder_lens, whose offset it replaces");
  }
}

constexpr Rule rules[] = {
    {.id = "sm_scale.is_the_layers_scale",
     .says = "sm_scale is the layer's scaling",
     .why = "models scale by other values than 1/sqrt(head size); the softmax is then too flat or "
            "too sharp",
     .source = "sgl-project/sglang#38754",
     .severity = Severity::wrong,
     .extend = scale_is_the_layers<ExtendCall>,
     .decode = scale_is_the_layers<DecodeCall>},
    {.id = "logit_cap.is_the_layers_cap",
     .says = "logit_cap is the layer's logit cap, 0 where it has none",
     .why = "large scores are then capped where they must not be, or not where they must",
     .source = "vllm-project/vllm-metal#665",
     .severity = Severity::wrong,
     .extend = cap_is_the_layers<ExtendCall>,
     .decode = cap_is_the_layers<DecodeCall>},
    {.id = "logit_cap.reaches_the_scores",
     .says = "a layer with a logit cap does not go through extend",
     .why = "SGLang's kernel takes the argument and ignores it while decode caps, so verify and "
            "decode disagree on the same token; a kernel that honours it is right",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, logit_cap is unused",
     .severity = Severity::policy,
     .extend = cap_reaches_the_scores},
    {.id = "logit_cap.is_off_on_the_mla_path",
     .says = "logit_cap is 0 where K and V share storage",
     .why = "decode's MLA path has no cap and raises",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp, CHECK_EQ(logit_cap, 0)",
     .severity = Severity::fault,
     .decode = cap_is_off_for_mla},
    {.id = "sliding_window_size.is_the_layers_window",
     .says = "sliding_window_size counts the keys a row sees, its own included: SGLang's layer "
             "value + 1",
     .why = "off by one, each row loses its oldest key or sees one the model never trained on",
     .source = "sgl-project/sglang intel_amx_backend.py, layer.sliding_window_size + 1",
     .severity = Severity::wrong,
     .extend = window_is_the_layers<ExtendCall>,
     .decode = window_is_the_layers<DecodeCall>},
    {.id = "sliding_window_size.stands_alone",
     .says = "a window comes without a tree mask, without an encoder in decode, and not on the MLA "
             "path",
     .why = "extend refuses a window with a mask; decode's window replaces the encoder offset, and "
            "its MLA path ignores the window",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp and decode.cpp",
     .severity = Severity::wrong,
     .extend = extend_window_stands_alone,
     .decode = decode_window_stands_alone},
};

}  // namespace

std::span<const Rule> cpu_scalars_rules() { return rules; }

}  // namespace attest
