#include "property_tests/mutants/detection.hpp"

#include <algorithm>

#include "property_tests/mutants/explained.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

const Mutant* mutant_named(std::string_view name) {
  const auto all = all_mutants();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Mutant& one) { return one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

/// What a stand-in's outcome adds to its bug's: a survivor weighs most, then a kill.
int weight(Outcome outcome) {
  switch (outcome) {
    case Outcome::survived:
      return 4;
    case Outcome::killed:
      return 3;
    case Outcome::elsewhere:
      return 2;
    case Outcome::equivalent:
      return 1;
    default:
      return 0;
  }
}

/// Nothing where all that was planned is there.
std::string missing_text(const Detection& run) {
  if (run.missing == 0) return "";
  const auto there = static_cast<std::int64_t>(run.trials.size());
  return "cut short: " + std::to_string(there) + " of " + std::to_string(there + run.missing) +
         " planned trials; of the others nothing is known\n";
}

}  // namespace

void Score::add(const Trial& trial) {
  honest_cases += trial.honest_cases;
  false_failures += trial.false_failures;
  switch (trial.outcome) {
    case Outcome::killed:
      ++killed;
      break;
    case Outcome::survived:
      ++survived;
      break;
    case Outcome::equivalent:
      ++equivalent;
      break;
    case Outcome::elsewhere:
      ++elsewhere;
      break;
    default:
      ++not_run;
  }
}

std::vector<std::string> complaints(const Detection& run) {
  std::vector<std::string> list = run.cut_short;
  for (const Trial& trial : run.trials) {
    if (trial.policy != "attest") continue;
    const std::string where = trial.mutant + " at " + std::to_string(trial.keys) + " keys";
    const Mutant* const mutant = mutant_named(trial.mutant);
    if (trial.outcome == Outcome::survived) {
      list.push_back("survived: " + where + " (" + counted(trial.cases, "case") + ")");
    }
    if (mutant != nullptr && trial.outcome == Outcome::killed &&
        !equivalent_because(*mutant, trial.keys).empty()) {
      list.push_back("caught and declared equivalent: " + where + ": " + trial.says);
    }
    if (trial.false_failures > 0) {
      list.push_back("false failure beside " + where + ": " + trial.false_failure);
    }
  }
  return list;
}

std::vector<BugOutcome> bugs_in(const Detection& run, std::int64_t keys, std::string_view policy,
                                const std::vector<HandedBug>& bugs) {
  std::vector<BugOutcome> outcomes;
  for (const HandedBug& bug : bugs) {
    BugOutcome found{.bug = &bug, .outcome = Outcome::not_run};
    const auto stands = stands_of(bug);
    for (const Trial& trial : run.trials) {
      if (trial.keys != keys || trial.policy != policy) continue;
      const Mutant* const mutant = mutant_named(trial.mutant);
      const bool stands_for_it =
          mutant != nullptr && std::any_of(stands.begin(), stands.end(),
                                           [&](auto stand) { return means(stand, *mutant); });
      if (!stands_for_it) continue;
      if (found.trial != nullptr && weight(trial.outcome) <= weight(found.outcome)) continue;
      found.outcome = trial.outcome;
      found.trial = &trial;
    }
    outcomes.push_back(found);
  }
  return outcomes;
}

std::string detection_text(const Detection& run) {
  std::map<std::pair<std::string, std::int64_t>, std::map<std::string, Score>> scores;
  for (const Trial& trial : run.trials) {
    const Mutant* const mutant = mutant_named(trial.mutant);
    const std::string kind = mutant != nullptr ? std::string(name(mutant->shows)) : "unknown";
    scores[{trial.policy, trial.keys}][kind].add(trial);
    scores[{trial.policy, trial.keys}]["~all"].add(trial);
    const bool later = mutant != nullptr && mutant->later();
    scores[{trial.policy, trial.keys}][later ? "~later" : "~before"].add(trial);
    if (later)
      scores[{trial.policy, trial.keys}]["~later " + std::to_string(mutant->batch)].add(trial);
  }
  std::string text;
  for (auto& [where, by_class] : scores) {
    // Where all were written at one time, the line of all says it.
    if (by_class["~before"].trials() == 0 || by_class["~later"].trials() == 0) {
      by_class.erase("~before");
      by_class.erase("~later");
    }
    if (by_class["~later 1"].trials() == 0 || by_class["~later 2"].trials() == 0) {
      by_class.erase("~later 1");
      by_class.erase("~later 2");
    }
    text += (where.first == "attest" ? "attest" : "policy " + where.first) + ", contexts of " +
            std::to_string(where.second) + " keys\n";
    for (const auto& [kind, score] : by_class) {
      std::string label = kind.starts_with('~') ? kind.substr(1) : kind;
      label.resize(12, ' ');
      text += "  " + label + "killed " + std::to_string(score.killed) + " of " +
              std::to_string(score.counted()) + ", survived " + std::to_string(score.survived) +
              ", equivalent " + std::to_string(score.equivalent) + ", by a test of its own " +
              std::to_string(score.elsewhere) + ", not run here " + std::to_string(score.not_run) +
              ", false failures " + std::to_string(score.false_failures) + " in " +
              std::to_string(score.honest_cases) + '\n';
    }
  }
  if (text.find("\n  later ") != std::string::npos) {
    text += "(later: written after the oracles were fixed, in one batch or two; before: before)\n";
  }
  return text + explained_text(run) + missing_text(run);
}

std::string detection_junit(const Detection& run) {
  std::map<std::string, std::vector<const Trial*>> suites;
  for (const Trial& trial : run.trials) {
    suites["mutants." + trial.policy + "." + std::to_string(trial.keys)].push_back(&trial);
  }
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const auto& [suite, trials] : suites) {
    std::string cases;
    std::int64_t failures = 0, skipped = 0;
    for (const Trial* trial : trials) {
      const bool failed = trial->outcome == Outcome::survived || trial->false_failures > 0;
      const bool skips = trial->outcome == Outcome::elsewhere || trial->outcome == Outcome::not_run;
      failures += failed ? 1 : 0;
      skipped += skips ? 1 : 0;
      cases += "    <testcase classname=\"" + xml_escaped(suite) + "\" name=\"" +
               xml_escaped(trial->mutant) + "\" time=\"" + std::to_string(trial->seconds) + "\">";
      if (failed) {
        const std::string& why =
            trial->false_failures > 0 ? trial->false_failure : std::string("survived");
        cases += "<failure message=\"" + xml_escaped(why) + "\"/>";
      }
      if (skips) cases += "<skipped message=\"" + xml_escaped(trial->says) + "\"/>";
      cases += "</testcase>\n";
    }
    xml += "  <testsuite name=\"" + xml_escaped(suite) + "\" tests=\"" +
           std::to_string(trials.size()) + "\" failures=\"" + std::to_string(failures) +
           "\" skipped=\"" + std::to_string(skipped) + "\">\n" + cases + "  </testsuite>\n";
  }
  if (run.missing > 0) {
    xml +=
        "  <testsuite name=\"mutants\" tests=\"1\" errors=\"1\">\n    <testcase "
        "classname=\"mutants\" name=\"every planned trial\"><error message=\"" +
        xml_escaped(missing_text(run)) + "\"/></testcase>\n  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

}  // namespace attest
