#include "property_tests/check_steps.hpp"

#include <algorithm>
#include <map>

#include "contracts/rules/row_judgement.hpp"
#include "contracts/step_rules.hpp"
#include "contracts/verdict.hpp"

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

std::string name_of(const CapturedCall& call) {
  const std::string id = call.id.empty() ? "line " + std::to_string(call.line) : call.id;
  return id + " (" + call.kernel + ", " + call.mode + " " + call.path + ")";
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

std::vector<CheckedStep> CallsByLayer::check() const {
  std::map<std::string, std::vector<SiteCall>> groups;
  std::vector<std::string> order;
  for (const Kept& kept : calls_) {
    std::vector<SiteCall>& group = groups[kept.layer];
    if (group.empty()) order.push_back(kept.layer);
    group.push_back({kept.name, kept.call, kept.problem});
  }
  std::vector<CheckedStep> steps;
  for (const std::string& layer : order) {
    const std::vector<SiteCall>& group = groups[layer];
    if (group.size() < 2) continue;
    steps.push_back({layer, static_cast<std::int64_t>(group.size()), check_step(group).findings()});
  }
  return steps;
}

std::string steps_text(const std::vector<CheckedStep>& steps, std::int64_t left_out) {
  std::string text;
  std::int64_t calls = 0;
  std::int64_t disagreeing = 0;
  for (const CheckedStep& step : steps) {
    calls += step.calls;
    if (step.findings.empty()) continue;
    ++disagreeing;
    text += step.layer + ", " + std::to_string(step.calls) + " calls\n";
    for (const Finding& finding : step.findings) {
      text += "  " + to_string(finding);
      if (finding.more > 0) text += " (and " + std::to_string(finding.more) + " more)";
      text += "\n";
    }
  }
  return text + "\n" + std::to_string(steps.size()) + " layers of " + std::to_string(calls) +
         " calls: " + std::to_string(disagreeing) + " disagree with themselves; " +
         std::to_string(left_out) + " calls left out.\n";
}

int steps_exit_code(const std::vector<CheckedStep>& steps) {
  if (steps.empty()) return exit_code(Verdict::unsupported);
  const bool rejected = std::ranges::any_of(steps, [](const CheckedStep& step) {
    return std::ranges::any_of(step.findings, [](const Finding& f) { return rejects(f.severity); });
  });
  return rejected ? exit_code(Verdict::rejected) : 0;
}

}  // namespace attest
