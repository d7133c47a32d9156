#include "contracts/rules.hpp"

#include <variant>

#include "contracts/rules/array_shape.hpp"

namespace attest {
namespace {

/// One field's rules. Those of a shape group run first: what they reject is judged by them alone,
/// so that no later rule reads past an array.
struct Group {
  std::span<const Rule> (*rules)();
  bool shape = false;
};

constexpr Group groups[] = {
    {array_shape_rules, /*shape=*/true},
};

void apply(const Rule& rule, const Call& call, const Truth& truth, Report& report) {
  if (!rule.applies_to(signature_of(call))) return;
  report.begin(rule.id, rule.severity);
  if (const auto* unified = std::get_if<UnifiedCall>(&call)) {
    rule.unified(*unified, truth, report);
  } else if (const auto* extend = std::get_if<ExtendCall>(&call)) {
    rule.extend(*extend, truth, report);
  } else if (const auto* decode = std::get_if<DecodeCall>(&call)) {
    rule.decode(*decode, truth, report);
  } else if (const auto* mla_decode = std::get_if<MlaDecodeCall>(&call)) {
    rule.mla_decode(*mla_decode, truth, report);
  }
}

void apply_groups(bool shape, const Call& call, const Truth& truth, Report& report) {
  for (const Group& group : groups) {
    if (group.shape != shape) continue;
    for (const Rule& rule : group.rules()) apply(rule, call, truth, report);
    if (shape && report.rejects()) return;
  }
}

}  // namespace

std::span<const Rule> all_rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> list;
    for (const Group& group : groups) {
      list.insert(list.end(), group.rules().begin(), group.rules().end());
    }
    return list;
  }();
  return all;
}

const Rule* find_rule(std::string_view id) {
  for (const Rule& rule : all_rules()) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

Report check(const Call& call, const Truth& truth) {
  Report report;
  apply_groups(/*shape=*/true, call, truth, report);
  if (!report.rejects()) apply_groups(/*shape=*/false, call, truth, report);
  return report;
}

}  // namespace attest
