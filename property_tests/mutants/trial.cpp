#include "property_tests/mutants/trial.hpp"

#include <algorithm>
#include <array>

#include "contracts/rules.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/mutants/mutant_cases.hpp"
#include "property_tests/mutants/trial_clock.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 5> outcome_names = {"killed", "survived", "equivalent",
                                                           "elsewhere", "not run"};

bool is_caught(Verdict verdict) {
  return verdict == Verdict::mismatch || verdict == Verdict::crashed || verdict == Verdict::hung;
}

bool was_judged(Verdict verdict) {
  return verdict != Verdict::unsupported && verdict != Verdict::unavailable;
}

JudgeOptions options_of(const TrialPlan& plan) {
  JudgeOptions options;
  options.rules = RulesMode::off;
  options.time_limit = std::chrono::seconds(3);
  options.reference_threads = 1;
  options.both_poisons = plan.keys <= 4096;
  options.diagnose = plan.diagnose;
  options.most_same = 8;  // nobody reads them; they are counted (explained.hpp)
  return options;
}

/// The oracle that refused first, or what ended the launch.
std::string refused_by(const Judgement& judgement) {
  if (judgement.verdict == Verdict::crashed) return "crash";
  if (judgement.verdict == Verdict::hung) return "hang";
  for (const OracleResult& oracle : judgement.oracles) {
    if (!oracle.passed) return oracle.oracle;
  }
  return "refusal";
}

std::vector<std::string> all_that_refused(const Judgement& judgement) {
  std::vector<std::string> names;
  for (const OracleResult& oracle : judgement.oracles) {
    if (!oracle.passed) names.push_back(oracle.oracle);
  }
  return names;
}

/// The rule that finds the mutant's call wrong, or slow; empty = none. Checked as of a kernel that
/// nobody vouches for.
std::string rule_against(const Case& c) {
  const SlotMap slots = make_slot_map(c.problem);
  const auto made = call_of(c, slots);
  const auto* const call = std::get_if<Call>(&made);
  if (call == nullptr) return "";
  const Report report = check(*call, Truth{c.problem, slots, strict_capabilities()});
  std::string slow;
  for (const Finding& finding : report.findings()) {
    if (rejects(finding.severity)) return finding.rule;
    if (finding.severity == Severity::slow && slow.empty()) slow = finding.rule;
  }
  return slow;
}

void judge_the_honest(const MutantCase& made, const JudgeOptions& options, Trial& trial) {
  if (!made.honest->available()) return;
  JudgeOptions quick = options;
  quick.diagnose = false;
  const Judgement judgement = judge(made.right, *made.honest, quick);
  if (!was_judged(judgement.verdict)) return;
  ++trial.honest_cases;
  if (!is_caught(judgement.verdict)) return;
  if (trial.false_failures++ > 0) return;
  trial.false_failure = std::string(made.honest->name()) + ", " + describe(made.right.problem) +
                        ": " + judgement.reason;
}

void make_smaller(const MutantCase& made, const TrialPlan& plan, const JudgeOptions& options,
                  Trial& trial) {
  // An explicit call is as small as it is meant to be.
  if (plan.shrink_trials <= 0 || made.c.call) return;
  JudgeOptions quick = options;
  quick.diagnose = false;
  const std::string by = trial.numbers_by.empty() ? trial.killed_by : trial.numbers_by;
  const Shrunk shrunk = shrink(made.c, plan.shrink_trials, [&](const Case& c) {
    if (is_stopped(plan)) return false;
    const Judgement judgement = judge(c, *made.backend, quick);
    return is_caught(judgement.verdict) && refused_by(judgement) == by;
  });
  trial.shrunk_requests = static_cast<std::int64_t>(shrunk.best.problem.requests.size());
  trial.shrunk_trials = shrunk.trials;
  trial.shrunk = describe(shrunk.best.problem);
  const Fixture fixture = fixture_of(shrunk.best, made.backend->name(), Verdict::mismatch, {});
  trial.shrunk_bytes = static_cast<std::int64_t>(to_json(fixture).size());
}

void note_kill(Trial& trial, std::string by, double seconds) {
  if (trial.outcome == Outcome::killed) return;
  trial.outcome = Outcome::killed;
  trial.killed_by = std::move(by);
  trial.seconds = seconds;
}

/// Judges one case. \returns whether the numbers are wrong.
bool judge_numbers(const MutantCase& made, const TrialPlan& plan, const TrialClock& clock,
                   Trial& trial) {
  const JudgeOptions options = options_of(plan);
  const Judgement judgement = judge(made.c, *made.backend, options);
  if (!was_judged(judgement.verdict)) return false;
  ++trial.numbers_cases;
  if (trial.outcome != Outcome::killed) trial.cases = trial.numbers_cases;
  if (!is_caught(judgement.verdict)) return false;
  trial.numbers_by = refused_by(judgement);
  trial.oracles = all_that_refused(judgement);
  trial.diagnosis = judgement.diagnosis;
  trial.says = describe(made.c.problem) + ": " + judgement.reason;
  note_kill(trial, trial.numbers_by, clock.seconds());
  if (clock.stopped()) return true;
  judge_the_honest(made, options, trial);
  make_smaller(made, plan, options, trial);
  return true;
}

/// Cases of a stream, until one is caught.
void try_cases(const Mutant& mutant, const TrialPlan& plan, Trial& trial) {
  const TrialClock clock(plan);
  const bool in_the_call = mutant.kind == MutantKind::metadata || mutant.kind == MutantKind::step;
  const bool has_numbers = mutant.shows != BugClass::cost && mutant.shows != BugClass::rule_only;
  for (std::uint64_t i = 0; i < clock.last_index() && !clock.enough(trial.numbers_cases); ++i) {
    const auto made = case_of(mutant, i, {.seed = plan.seed, .keys = plan.keys});
    if (!made) continue;
    if (in_the_call && trial.outcome != Outcome::killed) {
      ++trial.cases;
      const std::string rule = rule_against(made->c);
      if (!rule.empty()) {
        note_kill(trial, "rule " + rule, clock.seconds());
        trial.says = describe(made->c.problem) + ": " + rule;
        if (!has_numbers) return judge_the_honest(*made, options_of(plan), trial);
      }
    }
    if (!has_numbers && in_the_call) {
      ++trial.numbers_cases;
      continue;
    }
    if (judge_numbers(*made, plan, clock, trial)) return;
  }
  if (trial.outcome != Outcome::killed) trial.seconds = clock.seconds();
}

}  // namespace

std::string_view name(Outcome outcome) { return outcome_names[static_cast<std::size_t>(outcome)]; }

bool decided_without_cases(const Mutant& mutant, Trial& trial) {
  if (const std::string_view why = equivalent_because(mutant, trial.keys); !why.empty()) {
    trial.outcome = Outcome::equivalent;
    trial.says = why;
    return true;
  }
  if (!mutant.elsewhere.empty()) {
    trial.outcome = Outcome::elsewhere;
    trial.says = mutant.elsewhere;
    return true;
  }
  if (mutant.backend == nullptr) return false;
  const Answer available = mutant.backend->available();
  if (available) return false;
  trial.outcome = Outcome::not_run;
  trial.says = available.reason;
  return true;
}

Trial try_mutant(const Mutant& mutant, const TrialPlan& plan) {
  Trial trial{.mutant = mutant.name, .keys = plan.keys};
  // An equivalent one is judged all the same: it must not be caught.
  const bool decided = decided_without_cases(mutant, trial);
  if (decided && trial.outcome != Outcome::equivalent) return trial;
  const std::string why = trial.says;
  if (mutant.kind == MutantKind::graph || mutant.kind == MutantKind::relation) {
    try_relations(mutant, plan, trial);
  } else if (mutant.kind == MutantKind::rule) {
    try_rule(mutant, trial);
  } else {
    try_cases(mutant, plan, trial);
  }
  if (trial.outcome == Outcome::survived && trial.cases == 0) {
    trial.outcome = Outcome::not_run;
    trial.says = "no case of this length shows it at a cost of seconds";
  }
  if (!decided || trial.outcome == Outcome::killed) return trial;
  trial.outcome = Outcome::equivalent;
  trial.says = why;
  return trial;
}

}  // namespace attest
