#include <algorithm>
#include <memory>
#include <stdexcept>

#include "backends/hip/graph_faults.hpp"
#include "backends/registry.hpp"
#include "contracts/rules.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/mutants/mutant_cases.hpp"
#include "property_tests/mutants/trial_clock.hpp"
#include "property_tests/relations.hpp"
#include "property_tests/report/examples.hpp"

namespace attest {
namespace {

constexpr std::string_view of_graphs[] = {"graph_replays_longer", "graph_replays_shorter",
                                          "graph_replays_padded", "graph_after_eager"};
constexpr std::string_view of_launches[] = {"larger_max_seqlen_k", "decode_steps"};

std::span<const std::string_view> relations_for(const Mutant& mutant) {
  if (mutant.kind == MutantKind::graph) return of_graphs;
  return of_launches;
}

/// The same kernel and launcher without a fault.
const Backend& honest_of(const Mutant& mutant) {
  static const std::unique_ptr<Backend> launcher =
      hip::graph_fault_backend({.id = "none", .says = "nothing"});
  if (mutant.kind == MutantKind::graph) return *launcher;
  return *select_backends("scalar.unified@cpu").front();
}

/// What is wrong, damage included, or nothing.
std::optional<std::string> difference(const Twin& twin, const Backend& backend) try {
  return broken(twin, Holds::exactly, backend);
} catch (const std::runtime_error& error) {
  return error.what();
}

bool try_one(const Mutant& mutant, const Case& c, const TrialClock& clock, Trial& trial) {
  for (const std::string_view id : relations_for(mutant)) {
    const auto twin = find_relation(id)->twin(c, *mutant.backend);
    if (!twin) continue;
    if (clock.stopped()) return true;
    ++trial.cases;
    const auto why = difference(*twin, *mutant.backend);
    if (!why) continue;
    if (clock.stopped()) return true;
    ++trial.honest_cases;
    if (const auto wrong = difference(*twin, honest_of(mutant))) {
      trial.false_failure = *wrong;
      ++trial.false_failures;
      continue;
    }
    trial.outcome = Outcome::killed;
    trial.killed_by = "relation " + std::string(id);
    trial.seconds = clock.seconds();
    trial.says = describe(c.problem) + ": " + *why;
    return true;
  }
  return false;
}

}  // namespace

void try_relations(const Mutant& mutant, const TrialPlan& plan, Trial& trial) {
  const TrialClock clock(plan);
  for (std::uint64_t i = 0; i < clock.last_index() && !clock.enough(trial.cases); ++i) {
    GeneratorOptions options{.signature = Signature::unified,
                             .capabilities = &mutant.backend->capabilities(),
                             .max_kv = std::min<std::int64_t>(plan.keys, 160),
                             .max_requests = 3};
    auto c = case_of_length(plan.seed, i, plan.keys, options);
    if (!c) continue;
    if (mutant.kind == MutantKind::graph) c->problem.path = Path::replay;
    if (problem_error(c->problem)) continue;
    if (try_one(mutant, *c, clock, trial)) return;
  }
  trial.seconds = clock.seconds();
}

/// The rule finds what its own reject fixture has wrong, and says nothing of the same step without
/// the fault.
void try_rule(const Mutant& mutant, Trial& trial) {
  const std::string_view id = std::string_view(mutant.name).substr(mutant.name.find(':') + 1);
  const auto finds = [&](const Case& c) {
    const SlotMap slots = make_slot_map(c.problem);
    const auto made = call_of(c, slots);
    const auto* const call = std::get_if<Call>(&made);
    if (call == nullptr) return false;
    const Report report = check(*call, Truth{c.problem, slots});
    return std::any_of(report.findings().begin(), report.findings().end(),
                       [&](const Finding& finding) { return finding.rule == id; });
  };
  for (const Example& example : rule_examples()) {
    if (example.rule != id || trial.outcome == Outcome::killed) continue;
    const Fixture fixture = parse_fixture(example.json, example.file);
    ++trial.cases;
    if (!finds(case_of(fixture, true))) continue;
    trial.outcome = Outcome::killed;
    trial.killed_by = "rule " + std::string(id);
    trial.says = fixture.story;
    // The lowering of the same step, where it has one.
    Case right = case_of(fixture, true);
    right.call.reset();
    right.fault.clear();
    ++trial.honest_cases;
    if (finds(right)) {
      ++trial.false_failures;
      trial.false_failure = "the lowered call breaks " + std::string(id);
    }
  }
}

}  // namespace attest
