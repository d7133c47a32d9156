#include "property_tests/captured_fixture.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "contracts/signatures.hpp"
#include "fixtures/captured_check.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/result.hpp"
#include "property_tests/transplant.hpp"

namespace attest {
namespace {

using Rules = std::set<std::string>;

std::vector<Finding> findings_of(const Problem& problem, const Call& call, const Backend& backend) {
  const SlotMap slots = make_slot_map(problem);
  return check(call, Truth{problem, slots, backend.capabilities()}).findings();
}

Rules rules_of(const std::vector<Finding>& findings) {
  Rules rules;
  for (const Finding& finding : findings) rules.insert(std::string(finding.rule));
  return rules;
}

/// The finding to keep: the one asked for, else the first that rejects, else the first.
std::optional<Finding> chosen(const std::vector<Finding>& findings, const std::string& rule) {
  for (const Finding& finding : findings) {
    if (rule.empty() ? rejects(finding.severity) : finding.rule == rule) return finding;
  }
  if (rule.empty() && !findings.empty()) return findings.front();
  return std::nullopt;
}

std::optional<Call> lowered(Signature signature, const Problem& problem) {
  Lowered<Call> made = lower(signature, problem, make_slot_map(problem));
  if (auto* const call = std::get_if<Call>(&made)) return std::move(*call);
  return std::nullopt;
}

/// Backends of the signature that run here, the honest scalar kernel first.
std::vector<const Backend*> candidates(Signature signature) {
  std::vector<const Backend*> found;
  for (const Backend* const backend : all_backends()) {
    if (backend->capabilities().signature != signature || !backend->available().yes) continue;
    const bool scalar = backend->name().starts_with("scalar.");
    found.insert(scalar ? found.begin() : found.end(), backend);
  }
  return found;
}

/// What is kept while the case gets smaller.
struct Target {
  const Backend* backend = nullptr;
  std::string rule = {};  ///< empty: a failure
  Severity severity = Severity::policy;
  Rules allowed = {};     ///< what fired at the beginning
  std::string kind = {};  ///< of the failure
  Verdict verdict = Verdict::mismatch;
  std::vector<std::string> worker = {};
  /// Of a rule's call: what its numbers show too, and over which data; pass = nothing.
  Verdict symptom = Verdict::pass;
  Recipe recipe = Recipe::normal;
};

/// Ends that a fixture can show.
bool ends_badly(Verdict verdict) {
  return verdict == Verdict::mismatch || verdict == Verdict::crashed || verdict == Verdict::hung;
}

Case case_with(const Problem& problem, const Call& call) {
  Case c;
  c.problem = problem;
  c.signature = signature_of(call);
  c.call = call;
  return c;
}

Judgement judged(const Case& c, const Backend& backend, RulesMode rules,
                 const std::vector<std::string>& worker) {
  JudgeOptions options;
  options.rules = rules;
  options.diagnose = false;
  // Any call may come here, and a kernel that dies of one must not take the rest along.
  options.isolate = true;
  options.worker = worker;
  return judge(c, backend, options);
}

/// Whether the numbers still show what the call's did.
bool keeps_symptom(const Problem& problem, const Call& call, const Target& target) {
  if (target.symptom == Verdict::pass) return true;
  Case c = case_with(problem, call);
  c.recipe = target.recipe;
  return judged(c, *target.backend, RulesMode::report, target.worker).verdict == target.symptom;
}

bool holds(const Problem& problem, const Call& call, const Target& target) {
  if (target.rule.empty()) {
    if (!findings_of(problem, call, *target.backend).empty()) return false;  // the call has none
    const Judgement judgement =
        judged(case_with(problem, call), *target.backend, RulesMode::report, target.worker);
    return judgement.verdict == target.verdict && failure_kind(judgement) == target.kind;
  }
  const std::vector<Finding> findings = findings_of(problem, call, *target.backend);
  return std::ranges::includes(target.allowed, rules_of(findings)) &&
         std::ranges::any_of(findings,
                             [&](const Finding& finding) {
                               return finding.rule == target.rule &&
                                      finding.severity == target.severity;
                             }) &&
         keeps_symptom(problem, call, target);
}

/// What a strict kernel of the signature rejects, on a kernel here that rejects it too.
std::optional<Target> strict_target(const Problem& problem, const Call& call,
                                    const std::string& rule,
                                    const std::vector<const Backend*>& backends) {
  const SlotMap slots = make_slot_map(problem);
  const Report strict = check(call, Truth{problem, slots, captured_kernel(signature_of(call))});
  const auto wanted = chosen(strict.findings(), rule);
  if (!wanted) return std::nullopt;
  const Finding& finding = *wanted;
  for (const Backend* const backend : backends) {
    const auto findings = findings_of(problem, call, *backend);
    const bool same = std::ranges::any_of(findings, [&](const Finding& other) {
      return other.rule == finding.rule && other.severity == finding.severity;
    });
    if (!same) continue;
    return Target{backend, std::string(finding.rule), finding.severity, rules_of(findings)};
  }
  return std::nullopt;
}

std::variant<Target, std::string> target_of(const Problem& problem, const Call& call,
                                            const CapturedFixtureOptions& options) {
  const std::string& rule = options.rule;
  const Signature signature = signature_of(call);
  const std::vector<const Backend*> backends = candidates(signature);
  if (backends.empty()) return "no backend of " + std::string(name(signature)) + " runs here";
  if (auto strict = strict_target(problem, call, rule, backends)) return std::move(*strict);
  for (const Backend* const backend : backends) {
    const auto findings = findings_of(problem, call, *backend);
    const auto finding = chosen(findings, rule);
    if (!finding) continue;
    return Target{backend, std::string(finding->rule), finding->severity, rules_of(findings)};
  }
  if (!rule.empty()) return "rule " + rule + " does not fire on this call";
  const Judgement judgement =
      judged(case_with(problem, call), *backends.front(), RulesMode::report, options.worker);
  if (ends_badly(judgement.verdict)) {
    return Target{
        .backend = backends.front(), .kind = failure_kind(judgement), .verdict = judgement.verdict};
  }
  const std::string kernel(backends.front()->name());
  if (judgement.verdict == Verdict::pass) {
    return "nothing is wrong with this call: it breaks no rule, and " + kernel + " says pass";
  }
  return "this call breaks no rule, and its numbers were not judged: " + kernel + " says " +
         std::string(name(judgement.verdict)) + " (" + judgement.reason + ")";
}

/// The call's own fields that the target needs; the others are the lowering's from here on.
std::set<std::string_view> needed_fields(const Problem& problem, const Call& got, const Call& right,
                                         const Target& target) {
  const std::vector<std::string_view> all = differing_fields(got, right);
  std::set<std::string_view> kept(all.begin(), all.end());
  for (const std::string_view field : all) {
    kept.erase(field);
    const Call trial = transplanted(got, right, right, kept, Transplant::from_the_front);
    if (!holds(problem, trial, target)) kept.insert(field);
  }
  return kept;
}

/// A step and the call for it.
struct Found {
  Problem problem;
  Call call;
};

void shrink_found(Found& found, const Target& target, int max_trials, CapturedFixture& result) {
  const Signature signature = signature_of(found.call);
  const auto right = lowered(signature, found.problem);
  if (!right) {
    const auto made = lower(signature, found.problem, make_slot_map(found.problem));
    result.not_shrunk = std::get<Unsupported>(made).reason;
    return;
  }
  const Call got = found.call;
  const auto kept = needed_fields(found.problem, got, *right, target);
  found.call = transplanted(got, *right, *right, kept, Transplant::from_the_front);
  Case start;
  start.problem = found.problem;
  start.signature = signature;
  const Shrunk shrunk = shrink(start, max_trials, [&](const Case& candidate) {
    const auto onto = lowered(signature, candidate.problem);
    if (!onto) return false;
    for (const Transplant how :
         {Transplant::from_the_front, Transplant::from_the_back, Transplant::everywhere}) {
      const Call call = transplanted(got, *right, *onto, kept, how);
      if (!keeps_signs(got, call, *onto) || !holds(candidate.problem, call, target)) continue;
      found = {candidate.problem, call};
      return true;
    }
    return false;
  });
  result.trials = shrunk.trials;
  result.steps = shrunk.steps;
}

/// What a replay will say of one side, in both rules modes.
Expectation expectation_of(const Case& c, const Target& target, bool with_fault) {
  Expectation expected;
  expected.enforced = judged(c, *target.backend, RulesMode::enforce, target.worker).verdict;
  expected.reported = judged(c, *target.backend, RulesMode::report, target.worker).verdict;
  if (with_fault && !target.rule.empty()) expected.rules = {target.rule};
  return expected;
}

/// Finds data over which the call's numbers are wrong. \returns why none are
std::string look_for_symptom(const Problem& problem, const Call& call, Target& target) {
  Case c = case_with(problem, call);
  std::string why;
  for (const Recipe recipe : {Recipe::normal, Recipe::recall}) {
    c.recipe = recipe;
    const Judgement judgement = judged(c, *target.backend, RulesMode::report, target.worker);
    if (ends_badly(judgement.verdict)) {
      target.symptom = judgement.verdict;
      target.recipe = recipe;
      return "";
    }
    if (!why.empty()) continue;
    const std::string kernel(target.backend->name());
    why = judgement.verdict == Verdict::pass || judgement.verdict == Verdict::untrusted
              ? kernel + " computes the right numbers from this call"
              : kernel + " judges none: " + judgement.reason;
  }
  return why;
}

std::string source_of(const CapturedCall& captured) {
  std::string text = captured.id.empty() ? "captured call" : captured.id;
  text += ", " + captured.kernel;
  return captured.file_version.empty() ? text : text + " of " + captured.file_version;
}

}  // namespace

std::variant<CapturedFixture, std::string> fixture_of_captured(
    const CapturedCall& captured, const CapturedFixtureOptions& options) {
  if (!captured.call || !captured.problem) {
    return why_not_judged(captured);
  }
  auto chosen_target = target_of(*captured.problem, *captured.call, options);
  if (auto* const why = std::get_if<std::string>(&chosen_target)) return std::move(*why);
  Target target = std::get<Target>(std::move(chosen_target));
  target.worker = options.worker;
  CapturedFixture result;
  if (!target.rule.empty()) {
    result.no_symptom = look_for_symptom(*captured.problem, *captured.call, target);
  }
  result.kept = target.rule.empty() ? target.kind : target.rule;
  Found found{*captured.problem, *captured.call};
  if (options.max_trials > 0) shrink_found(found, target, options.max_trials, result);
  Case faulty = case_with(found.problem, found.call);
  faulty.recipe = target.recipe;
  Fixture& fixture = result.fixture;
  fixture.name = "captured";
  fixture.story = result.kept + ": " + describe(found.problem);
  fixture.source = source_of(captured);
  fixture.trace = {found.problem};
  fixture.signature = name(faulty.signature);
  fixture.call = found.call;
  fixture.recipe = faulty.recipe;
  fixture.backend = target.backend->name();
  const Expectation expected = expectation_of(faulty, target, true);
  if (lowered(faulty.signature, found.problem)) {
    fixture.faulty = expected;
    Case fixed = faulty;
    fixed.call.reset();
    fixture.fixed = expectation_of(fixed, target, false);
  } else {
    fixture.fixed = expected;  // the call is its only side
  }
  return result;
}

}  // namespace attest
