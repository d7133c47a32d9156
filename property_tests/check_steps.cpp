#include "property_tests/check_steps.hpp"

#include <algorithm>
#include <map>

#include "contracts/printable.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/step_rules.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

std::string layer_of(const std::string& version, const Model& m) {
  std::string text = version.empty() ? "one framework" : version;
  text += ", layer of " + std::to_string(m.num_q_heads) + ":" + std::to_string(m.num_kv_heads) +
          " heads of " + std::to_string(m.head_dim);
  if (m.v_head_dim != m.head_dim) text += "/" + std::to_string(m.v_head_dim);
  text += ", scale " + number_text(m.softmax_scale);
  if (m.softcap > 0) text += ", cap " + number_text(m.softcap);
  if (m.window) text += ", window of " + std::to_string(*m.window) + " keys";
  return m.mla ? text + ", MLA" : text;
}

/// Its name, and the size that its capture must have.
std::string size_of(const SiteCall& replay) {
  const Problem& p = replay.problem;
  return replay.name + ", of " + counted(static_cast<std::int64_t>(p.requests.size()), "request") +
         " and " + counted(p.total_new_tokens(), "row");
}

CheckedStep checked(const std::string& layer, const LayerCalls& calls) {
  CheckedStep step{.layer = layer,
                   .calls = static_cast<std::int64_t>(calls.all().size()),
                   .findings = check_step(calls).findings(),
                   .replays = static_cast<std::int64_t>(calls.graphs().size()),
                   .without_capture = 0,
                   .first_without = {}};
  const std::vector<const SiteCall*> alone = calls.without_capture();
  step.without_capture = static_cast<std::int64_t>(alone.size());
  if (!alone.empty()) step.first_without = size_of(*alone.front());
  return step;
}

std::string text_of(const CheckedStep& step) {
  if (step.findings.empty() && step.without_capture == 0) return "";
  std::string text = printable(step.layer) + ", " + std::to_string(step.calls) + " calls\n";
  for (const Finding& finding : step.findings) {
    text += "  " + printable(to_string(finding)) + "\n";
  }
  if (step.without_capture == 0) return text;
  return text + "  " + std::to_string(step.without_capture) + " of " +
         counted(step.replays, "replay") +
         " not held against a capture: none of the same kernel, mode, pool, requests and rows is "
         "among the calls; the first is " +
         printable(step.first_without) + "\n";
}

std::string name_of(const CapturedCall& call) {
  const std::string what = call.kernel + ", " + call.mode + " " + call.path;
  const std::string place = place_of({call.file, call.line, ""});
  return call.id.empty() ? place + " (" + what + ")" : call.id + " (" + what + ", " + place + ")";
}

}  // namespace

void CallsByLayer::add(const CapturedCall& call) {
  if (call.call && call.problem) {
    calls_.push_back({layer_of(call.file_version, call.problem->model), name_of(call), *call.call,
                      *call.problem});
  } else {
    ++left_out_;
  }
}

CheckedLayers CallsByLayer::check(const std::atomic<bool>* stop) const {
  std::map<std::string, std::vector<SiteCall>> groups;
  std::vector<std::string> order;
  for (const Kept& kept : calls_) {
    std::vector<SiteCall>& group = groups[kept.layer];
    if (group.empty()) order.push_back(kept.layer);
    group.push_back({kept.name, kept.call, kept.problem});
  }
  CheckedLayers layers{.steps = {}, .left_out = left_out_};
  for (const std::string& layer : order) {
    const std::vector<SiteCall>& group = groups[layer];
    layers.alone += group.size() == 1 ? 1 : 0;
    if (group.size() < 2 || (stop != nullptr && *stop)) continue;
    layers.steps.push_back(checked(layer, LayerCalls(group, stop)));
  }
  layers.early = stop != nullptr && *stop;
  return layers;
}

std::string steps_text(const CheckedLayers& layers, std::int64_t limit) {
  std::string text;
  std::int64_t calls = 0;
  std::int64_t disagreeing = 0;
  std::int64_t without_capture = 0;
  std::int64_t blocks = 0;
  for (const CheckedStep& step : layers.steps) {
    calls += step.calls;
    disagreeing += step.findings.empty() ? 0 : 1;
    without_capture += step.without_capture;
    const std::string block = text_of(step);
    if (block.empty() || (limit > 0 && blocks++ >= limit)) continue;
    text += block;
  }
  if (limit > 0 && blocks > limit) {
    text += "... and " + counted(blocks - limit, "more layer") + " (--limit 0 shows all)\n";
  }
  text += "\n" + counted(static_cast<std::int64_t>(layers.steps.size()), "layer") + " of " +
          counted(calls, "call") + ": ";
  const char* const why_nothing = layers.early
                                      ? "nothing was compared before the end; "
                                      : "nothing was compared, for no layer has two calls; ";
  text += layers.steps.empty() ? why_nothing
                               : std::to_string(disagreeing) + " disagree with themselves; ";
  if (without_capture > 0) text += counted(without_capture, "replay") + " without a capture; ";
  if (layers.alone > 0) {
    text += counted(layers.alone, "call") + " alone in " + (layers.alone == 1 ? "its" : "their") +
            " layer; ";
  }
  return text + counted(layers.left_out, "call") + " left out" +
         (layers.left_out > 0 ? ", without a truth or not read by this version" : "") + ".\n";
}

int steps_exit_code(const std::vector<CheckedStep>& steps) {
  if (steps.empty()) return exit_code(Verdict::unsupported);
  const bool rejected = std::ranges::any_of(steps, [](const CheckedStep& step) {
    return std::ranges::any_of(step.findings, [](const Finding& f) { return rejects(f.severity); });
  });
  return rejected ? exit_code(Verdict::rejected) : 0;
}

}  // namespace attest
