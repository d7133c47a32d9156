#include "property_tests/save_failure.hpp"

#include <algorithm>

#include "fixtures/fixture.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> rejecting_rules(const Judgement& judgement) {
  std::vector<std::string> rules;
  for (const Finding& finding : judgement.findings) {
    const bool known = std::find(rules.begin(), rules.end(), finding.rule) != rules.end();
    if (rejects(finding.severity) && !known) rules.push_back(finding.rule);
  }
  return rules;
}

}  // namespace

std::string in_words(const Case& c) {
  std::string text = describe(c.problem) + ", recipe " + std::string(name(c.recipe));
  if (!c.fault.empty()) text += ", with the fault " + c.fault;
  return text;
}

Case shrink_failure(CaseResult& result, const Case& c, const Backend& backend,
                    const JudgeOptions& options, const ShrinkLimits& limits) {
  const Verdict verdict = result.judgement.verdict;
  if (limits.budget.count() == 0 || verdict == Verdict::hung) return c;
  const std::string kind = failure_kind(result.judgement);
  const auto deadline = Clock::now() + limits.budget;
  JudgeOptions trial_options = options;
  trial_options.before_launch = nullptr;
  trial_options.time_limit = std::min(options.time_limit, limits.budget);
  const Shrunk shrunk = shrink(c, limits.max_trials, [&](const Case& candidate) {
    if (Clock::now() > deadline || (limits.stop && limits.stop())) return false;
    const Judgement judgement = judge(candidate, backend, trial_options);
    return judgement.verdict == verdict && failure_kind(judgement) == kind;
  });
  if (shrunk.steps == 0) return c;
  result.shrunk = counted(shrunk.trials, "trial") + ", " + counted(shrunk.steps, "step") + ": " +
                  in_words(shrunk.best);
  return shrunk.best;
}

void save_failure(CaseResult& result, const Case& c, const Backend& backend, RulesMode rules,
                  const std::filesystem::path& folder) {
  Fixture fixture =
      fixture_of(c, backend.name(), result.judgement.verdict, rejecting_rules(result.judgement));
  fixture.backend = backend.selector();
  if (rules == RulesMode::report) fixture.name += "-rules-report";
  if (rules == RulesMode::off) fixture.name += "-rules-off";
  if (!folder.empty()) std::filesystem::create_directories(folder);
  const std::filesystem::path path = folder / (fixture.name + ".json");
  write_atomically(path, to_json(fixture));
  result.fixture = path.string();
}

}  // namespace attest
