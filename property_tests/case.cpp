#include "property_tests/case.hpp"

#include <algorithm>
#include <cctype>

#include "contracts/rules.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/step_faults.hpp"

namespace attest {
namespace {

/// Letters, digits, dots and single dashes of `text`: a file name.
std::string file_stem(std::string_view text) {
  std::string stem;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
    if (plain) {
      stem += c;
    } else if (!stem.empty() && stem.back() != '-') {
      stem += '-';
    }
  }
  return stem;
}

bool any_rejects(const std::vector<std::string>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const std::string& id) {
    const Rule* const rule = find_rule(id);
    return rule != nullptr && rejects(rule->severity);
  });
}

/// The call of the trace's last step with what the step before it left. \throws FixtureError
Call call_after(const Fixture& fixture, Signature signature) {
  const StepFault* const fault = find_step_fault(fixture.fault);
  if (fault == nullptr) {
    throw FixtureError(fixture.name + ": /fault: \"" + fixture.fault +
                       "\" is not a fault between two steps");
  }
  const Problem& now = fixture.trace.back();
  Lowered<Call> made = lower(signature, now, make_slot_map(now));
  if (const auto* no = std::get_if<Unsupported>(&made)) {
    throw FixtureError(fixture.name + ": /trace/1: " + no->reason);
  }
  Call call = std::move(std::get<Call>(made));
  if (!fault->apply(fixture.trace.front(), now, call)) {
    throw FixtureError(fixture.name + ": /fault: " + fixture.fault + " changes nothing here");
  }
  return call;
}

/// A fault that this version cannot put into the fixture is the text's mistake, no verdict.
/// \throws FixtureError
void require_known_fault(const Fixture& fixture) {
  const bool between_steps = fixture.trace.size() == 2 && !fixture.call;
  if (fixture.fault.empty() || between_steps || find_metadata_fault(fixture.fault)) return;
  const std::string at = fixture.name + ": /fault: \"" + fixture.fault + "\" ";
  if (find_step_fault(fixture.fault) == nullptr) {
    throw FixtureError(at + "is not a fault of a call (attest explain faults)");
  }
  throw FixtureError(at + (fixture.call ? "is put into the lowered call, not into a given one"
                                        : "is one between two steps, and needs a trace of two"));
}

}  // namespace

std::variant<Call, Unsupported> call_of(const Case& c, const SlotMap& slots) {
  std::variant<Call, Unsupported> made = Unsupported{};
  if (c.call) {
    made = *c.call;
  } else {
    Lowered<Call> lowered = lower(c.signature, c.problem, slots);
    if (auto* no = std::get_if<Unsupported>(&lowered)) return std::move(*no);
    made = std::move(std::get<Call>(lowered));
  }
  if (c.fault.empty()) return made;
  const MetadataFault* const fault = find_metadata_fault(c.fault);
  if (fault == nullptr) return Unsupported{"no metadata fault is called \"" + c.fault + '"'};
  if (!fault->apply(c.problem, slots, std::get<Call>(made))) {
    return Unsupported{why_nothing_changes(*fault, c.signature)};
  }
  return made;
}

Case case_of(const Fixture& fixture, bool with_fault) {
  if (fixture.trace.empty() || fixture.trace.size() > 2) {
    throw FixtureError(fixture.name + ": /trace: holds " + std::to_string(fixture.trace.size()) +
                       " steps; this version judges one or two");
  }
  const auto signature = signature_from_name(fixture.signature);
  if (!signature) {
    throw FixtureError(fixture.name + ": /signature: \"" + fixture.signature +
                       "\" is not a signature this version knows");
  }
  require_known_fault(fixture);
  Case c;
  c.problem = fixture.trace.back();
  c.signature = *signature;
  c.recipe = fixture.recipe;
  c.seed = fixture.seed;
  c.poison = fixture.poison;
  c.origin = fixture.name;
  // Explicit arguments are the faulty side where there are two: the right ones are the lowering's.
  if (with_fault || !fixture.faulty) c.call = fixture.call;
  if (!with_fault) return c;
  if (fixture.trace.size() == 2 && !fixture.call) {
    c.call = call_after(fixture, *signature);
  } else {
    c.fault = fixture.fault;
  }
  return c;
}

Fixture fixture_of(const Case& c, std::string_view backend, Verdict verdict,
                   const std::vector<std::string>& rules) {
  Fixture fixture;
  const std::string fault = c.fault.empty() ? "" : " fault " + c.fault;
  fixture.name = file_stem(std::string(backend) + ' ' + c.origin + fault);
  fixture.story = describe(c.problem);
  fixture.source = c.origin;
  fixture.trace = {c.problem};
  fixture.signature = name(c.signature);
  fixture.call = c.call;
  fixture.fault = c.fault;
  fixture.recipe = c.recipe;
  fixture.seed = c.seed;
  fixture.poison = c.poison;
  fixture.backend = backend;
  Expectation expected;
  expected.enforced = any_rejects(rules) ? Verdict::rejected : verdict;
  expected.reported = verdict == Verdict::rejected ? Verdict::mismatch : verdict;
  expected.rules = rules;
  // A wrong call has a right one, which a correct kernel passes; a wrong kernel has one side only.
  if (c.fault.empty()) {
    fixture.fixed = expected;
  } else {
    fixture.faulty = expected;
  }
  return fixture;
}

}  // namespace attest
