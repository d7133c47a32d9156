#include "contracts/rule.hpp"

#include <array>
#include <utility>

namespace attest {
namespace {

constexpr std::array<std::string_view, 5> kind_names = {"call", "step", "trace", "data", "runtime"};
constexpr std::array<std::string_view, 4> severity_names = {"wrong", "fault", "slow", "policy"};

}  // namespace

std::string_view name(RuleKind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

std::string_view name(Severity severity) {
  return severity_names[static_cast<std::size_t>(severity)];
}

bool rejects(Severity severity) {
  return severity == Severity::wrong || severity == Severity::fault;
}

std::string to_string(const Finding& finding) {
  std::string text(name(finding.severity));
  text += ' ';
  text +=
      finding.rule + ": " + finding.where + " is " + finding.got + ", expected " + finding.expected;
  if (finding.more > 0) text += " (and " + std::to_string(finding.more) + " more)";
  return text;
}

void Report::begin(std::string_view rule, Severity severity) {
  rule_ = rule;
  severity_ = severity;
  first_of_rule_ = findings_.size();
}

void Report::add(std::string where, std::string got, std::string expected) {
  add(severity_, std::move(where), std::move(got), std::move(expected));
}

void Report::add(Severity severity, std::string where, std::string got, std::string expected) {
  // The limit holds per severity: findings that only advise never crowd out one that rejects.
  std::int64_t kept = 0;
  Finding* last = nullptr;
  for (std::size_t i = first_of_rule_; i < findings_.size(); ++i) {
    if (findings_[i].severity != severity) continue;
    ++kept;
    last = &findings_[i];
  }
  if (last && kept >= limit_) {
    ++last->more;
    return;
  }
  findings_.push_back(
      {rule_, severity, std::move(where), std::move(got), std::move(expected), /*more=*/0});
}

void Report::add_more(std::int64_t count) {
  if (findings_.size() > first_of_rule_) findings_.back().more += count;
}

void Report::not_recorded(std::string_view array) {
  for (const std::string& known : missing_) {
    if (known == array) return;
  }
  missing_.emplace_back(array);
}

bool Report::rejects() const {
  for (const Finding& finding : findings_) {
    if (attest::rejects(finding.severity)) return true;
  }
  return false;
}

bool Report::found(std::string_view rule) const {
  for (const Finding& finding : findings_) {
    if (finding.rule == rule) return true;
  }
  return false;
}

bool Rule::applies_to(Signature signature) const {
  switch (signature) {
    case Signature::unified:
      return unified != nullptr;
    case Signature::extend:
      return extend != nullptr;
    case Signature::decode:
      return decode != nullptr;
    case Signature::mla_decode:
      return mla_decode != nullptr;
    case Signature::batch_prefill:
      return batch_prefill != nullptr;
    case Signature::paged_ragged:
      return paged_ragged != nullptr;
    case Signature::legacy_extend:
      return legacy_extend != nullptr;
    case Signature::vllm_cpu:
      return vllm_cpu != nullptr;
  }
  return false;
}

}  // namespace attest
