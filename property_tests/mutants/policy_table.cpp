#include <algorithm>
#include <map>
#include <set>

#include "property_tests/mutants/detection.hpp"
#include "property_tests/mutants/markdown_cells.hpp"

namespace attest {
namespace {

/// Scores of each policy, and of attest on the same mutants with as many cases, by context.
struct Compared {
  std::set<std::int64_t> contexts;
  std::map<std::string, std::map<std::int64_t, Score>> policies;
  std::map<std::int64_t, std::int64_t> most_cases;
  std::map<std::int64_t, Score> ours;
};

Compared compared(const Detection& run) {
  Compared sums;
  std::set<std::pair<std::string, std::int64_t>> judged;
  for (const Trial& trial : run.trials) {
    if (trial.policy == "attest") continue;
    sums.contexts.insert(trial.keys);
    sums.policies[trial.policy][trial.keys].add(trial);
    sums.most_cases[trial.keys] = std::max(sums.most_cases[trial.keys], trial.cases);
    const bool counts = trial.outcome == Outcome::killed || trial.outcome == Outcome::survived;
    if (counts) judged.emplace(trial.mutant, trial.keys);
  }
  for (Trial trial : run.trials) {
    if (trial.policy != "attest" || !judged.contains({trial.mutant, trial.keys})) continue;
    // By the numbers alone, and in no more cases than the policies had.
    const bool late = trial.numbers_cases > sums.most_cases[trial.keys];
    if (trial.outcome == Outcome::killed && (trial.numbers_by.empty() || late)) {
      trial.outcome = Outcome::survived;
    }
    sums.ours[trial.keys].add(trial);
  }
  return sums;
}

std::string line_of(std::vector<std::string> cells, std::map<std::int64_t, Score>& scores,
                    const std::set<std::int64_t>& contexts) {
  Score sum;
  for (const std::int64_t keys : contexts) {
    cells.push_back(rate(scores[keys]));
    sum.honest_cases += scores[keys].honest_cases;
    sum.false_failures += scores[keys].false_failures;
  }
  cells.push_back(std::to_string(sum.false_failures) + " in " + std::to_string(sum.honest_cases));
  return row(cells);
}

std::string preamble(const Compared& sums) {
  std::string text =
      "## Against the suites in use\n\nMutants that stand for a public bug or a generic mutation, "
      "judged "
      "by the data and the comparison of well-known suites: no rule, no poison, no guard\nbytes, "
      "no second "
      "launch. What lies where nothing may be read is an ordinary number; outputs begin as NaN, "
      "which "
      "favours them. A case\ncounts only if the kernel without the mutant passes it; where it does "
      "not, that "
      "is a false failure. Shapes, lengths and paging are attest's; the suites' own\nare narrower. "
      "Killed "
      "by the numbers of the output; attest in the last row likewise, without its rules, in as "
      "many "
      "cases: at most";
  for (const auto& [keys, most] : sums.most_cases) {
    text += ' ' + std::to_string(most) + " at " + keys_in_words(keys) + ',';
  }
  text.back() = '.';
  return text + "\n\n";
}

}  // namespace

std::string policy_table(const Detection& run) {
  Compared sums = compared(run);
  if (sums.policies.empty()) return "";
  std::vector<std::string> header = {"suite", "data", "comparison"};
  for (const std::int64_t keys : sums.contexts) header.push_back(keys_in_words(keys));
  header.emplace_back("false failures");
  std::string text = preamble(sums) + row(header) + rule_line(header.size());
  std::string sources = "\nWhere each comparison comes from:\n\n";
  for (const Policy& policy : all_policies()) {
    const auto at = sums.policies.find(std::string(policy.name));
    if (at == sums.policies.end()) continue;
    text += line_of(
        {std::string(policy.suite), std::string(policy.data), escaped(std::string(policy.rule))},
        at->second, sums.contexts);
    sources += "* " + std::string(policy.suite) + ": " + std::string(policy.source) + '\n';
  }
  text += line_of({"**attest**", "by case", "every oracle that applies"}, sums.ours, sums.contexts);
  return text + sources + '\n';
}

}  // namespace attest
