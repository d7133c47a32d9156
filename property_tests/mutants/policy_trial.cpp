#include <cmath>

#include "property_tests/isolated_backend.hpp"
#include "property_tests/launch_limits.hpp"
#include "property_tests/launch_pair.hpp"
#include "property_tests/long_context.hpp"
#include "property_tests/mutants/mutant_cases.hpp"
#include "property_tests/mutants/trial_clock.hpp"

namespace attest {
namespace {

/// What a suite would say of one case on one kernel.
struct Word {
  bool judged = false;
  std::string refuses;  ///< empty = it passes
};

std::vector<std::int64_t> compared_rows(const Attended& meaning) {
  std::vector<std::int64_t> rows;
  for (std::size_t r = 0; r < meaning.rows.size(); ++r) {
    if (meaning.rows[r].expect == RowExpectation::value) {
      rows.push_back(static_cast<std::int64_t>(r));
    }
  }
  return rows;
}

std::vector<double> rows_of(const std::vector<double>& all, const Expected& expected,
                            const std::vector<std::int64_t>& rows) {
  std::vector<double> kept;
  for (const std::int64_t row : rows) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(expected.index(row, 0, 0));
    kept.insert(kept.end(), first,
                first + static_cast<std::ptrdiff_t>(expected.heads * expected.dim));
  }
  return kept;
}

/// The reference and the plain implementation of one case: the same for every kernel.
struct Answers {
  Answers(const Case& c, const Policy& policy)
      : source(c.problem, c.recipe, c.seed, c.poison), meaning(attended(c.problem)) {
    ReferenceOptions options;
    options.only_rows = sample_rows(c, meaning);
    options.threads = 1;
    expected = reference_attention(meaning, source, options);
    rows = compared_rows(meaning);
    if (policy.needs_naive) naive = low_precision_attention(meaning, source, rows);
  }
  TensorSource source;
  Attended meaning;
  Expected expected;
  std::vector<std::int64_t> rows;
  std::vector<double> naive;
};

Word word_on(const Case& c, const Backend& backend, const Policy& policy, const Answers& answers) {
  const SlotMap slots = make_slot_map(c.problem);
  const auto made = call_of(c, slots);
  const auto* const call = std::get_if<Call>(&made);
  if (call == nullptr || answers.rows.empty()) return {};
  if (!backend.available() || !backend.supports(*call)) return {};
  if (cannot_launch(*call, c.problem, slots, 0)) return {};
  JudgeOptions options;
  options.both_poisons = false;
  options.time_limit = std::chrono::seconds(3);
  std::optional<IsolatedBackend> isolated;
  if (backend.capabilities().isolate) {
    isolated.emplace(backend, options.worker, options.time_limit);
  }
  const Launched launched =
      launch(c, *call, answers.source, answers.meaning, isolated ? *isolated : backend, options);
  if (launched.ended == Verdict::unavailable) return {};
  if (launched.ended) return {true, launched.reason};
  const Output& got = launched.finished().out;
  if (got.rows < answers.expected.rows || got.heads != answers.expected.heads ||
      got.dim != answers.expected.dim) {
    return {true, "an output of another shape"};
  }
  const std::vector<double> values(got.values.begin(), got.values.end());
  const std::vector<double> kept = rows_of(values, answers.expected, answers.rows);
  const std::vector<double> expected =
      rows_of(answers.expected.out, answers.expected, answers.rows);
  const std::vector<double> abs_v = rows_of(answers.expected.abs_v, answers.expected, answers.rows);
  const Dtype out = c.problem.model.out_dtype;
  return {true, policy.refuses({.got = kept,
                                .expected = expected,
                                .naive = answers.naive,
                                .abs_v = abs_v,
                                .unit_roundoff = unit_roundoff(out)})};
}

void try_policy_cases(const Mutant& mutant, const TrialPlan& plan, const Policy& policy,
                      Trial& trial) {
  const TrialClock clock(plan);
  const MutantStream stream{
      .seed = plan.seed, .keys = plan.keys, .recipe = policy.recipe, .dtype = policy.dtype};
  for (std::uint64_t i = 0; i < clock.last_index() && !clock.enough(trial.cases); ++i) {
    const auto made = case_of(mutant, i, stream);
    if (!made) continue;
    const Answers answers(made->c, policy);
    const Word word = word_on(made->c, *made->backend, policy, answers);
    if (!word.judged) continue;
    ++trial.cases;
    if (word.refuses.empty() || clock.stopped()) continue;
    const Word honest = word_on(made->right, *made->honest, policy, answers);
    trial.honest_cases += honest.judged ? 1 : 0;
    if (!honest.refuses.empty()) {
      if (trial.false_failures++ == 0) trial.false_failure = honest.refuses;
      continue;
    }
    trial.outcome = Outcome::killed;
    trial.killed_by = policy.name;
    trial.seconds = clock.seconds();
    trial.says = describe(made->c.problem) + ": " + word.refuses;
    return;
  }
  trial.seconds = clock.seconds();
}

}  // namespace

Trial try_mutant(const Mutant& mutant, const TrialPlan& plan, const Policy& policy) {
  Trial trial{.mutant = mutant.name, .keys = plan.keys, .policy = std::string(policy.name)};
  if (decided_without_cases(mutant, trial)) return trial;
  if (mutant.kind == MutantKind::graph || mutant.kind == MutantKind::relation ||
      mutant.kind == MutantKind::rule) {
    trial.outcome = Outcome::not_run;
    trial.says = "a suite compares outputs of single calls";
    return trial;
  }
  try_policy_cases(mutant, plan, policy, trial);
  if (trial.outcome == Outcome::survived && trial.cases == 0) {
    trial.outcome = Outcome::not_run;
    trial.says = "no case of this length and data shows it";
  }
  return trial;
}

}  // namespace attest
