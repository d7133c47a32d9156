#include "property_tests/mutants/explained.hpp"

#include <algorithm>
#include <array>

#include "backends/registry.hpp"
#include "property_tests/diagnose.hpp"
#include "property_tests/mutants/markdown_cells.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 4> subjects = {"metadata", "addresses", "masks",
                                                      "arithmetic"};
constexpr std::array<std::string_view, 6> namings = {
    "nothing to name", "first", "second", "wrongly", "unexplained", "no hypothesis"};

const Mutant* mutant_named(std::string_view name) {
  const auto all = all_mutants();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Mutant& one) { return one.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What the call or a step says is the metadata's, wherever a kernel shows it.
bool is_in_the_call(const Mutant& mutant) {
  return mutant.kind == MutantKind::metadata || mutant.kind == MutantKind::step;
}

/// "named second, prefix_hole says it"
std::string how_named(const Mutant& mutant, Named how) {
  if (how == Named::no_hypothesis) return "no hypothesis says it";
  const std::string word = how == Named::unexplained ? "" : "named ";
  return word + std::string(name(how)) + ", " + std::string(diagnosable(mutant).names) + " says it";
}

std::string line_of(std::string_view label, const NamingScore& score) {
  return std::string(label) + ": a hypothesis for " +
         share(score.with_hypothesis(), score.outputs) + ", named first for " +
         share(score.first, score.with_hypothesis()) + ", second for " +
         std::to_string(score.second) + ", another named for " + std::to_string(score.wrongly) +
         ", unexplained " + std::to_string(score.unexplained);
}

NamingScore sum_of(const Detection& run, std::span<const Subject> wanted,
                   Written written = Written::ever) {
  NamingScore sum;
  for (const Subject subject : wanted) {
    const NamingScore one = naming_score(run, subject, written);
    sum.outputs += one.outputs;
    sum.first += one.first;
    sum.second += one.second;
    sum.wrongly += one.wrongly;
    sum.unexplained += one.unexplained;
    sum.no_hypothesis += one.no_hypothesis;
  }
  return sum;
}

constexpr std::array located = {Subject::metadata, Subject::address, Subject::mask};

std::string shrunk_sentence(const ShrinkScore& shrunk) {
  return "Smallest failing case: median " + counted(shrunk.requests, "request") + " after " +
         counted(shrunk.trials, "trial") + ", over " + counted(shrunk.cases, "mutant") +
         "; the largest fixture has " + std::to_string(shrunk.largest_fixture) + " bytes.";
}

/// A line for every mutant that was not named first, and where there are few for every one.
std::string mutant_lines(const Detection& run) {
  constexpr std::size_t few = 12;
  std::string all, others;
  std::size_t outputs = 0;
  for (const Trial& trial : run.trials) {
    const Mutant* const mutant = mutant_named(trial.mutant);
    if (trial.policy != "attest" || mutant == nullptr) continue;
    const Named how = named(*mutant, trial);
    if (how == Named::nothing) continue;
    ++outputs;
    const std::string line = "  " + trial.mutant + " at " + std::to_string(trial.keys) +
                             " keys: " + how_named(*mutant, how) + "; " + trial.diagnosis + '\n';
    all += line;
    if (how != Named::first && how != Named::no_hypothesis) others += line;
  }
  return outputs <= few ? all : others;
}

/// The mutants that a hypothesis says and that were not named first.
std::string misnamed(const Detection& run) {
  std::string lines;
  for (const Trial& trial : run.trials) {
    const Mutant* const mutant = mutant_named(trial.mutant);
    if (trial.policy != "attest" || mutant == nullptr) continue;
    const Named how = named(*mutant, trial);
    if (how != Named::second && how != Named::wrongly && how != Named::unexplained) continue;
    lines += row({"`" + trial.mutant + "`", keys_in_words(trial.keys),
                  std::string(diagnosable(*mutant).names), std::string(name(how)),
                  escaped(trial.diagnosis)});
  }
  if (lines.empty()) return "";
  return "Not named first:\n\n| mutant | keys | says it | named | diagnosis |\n" + rule_line(5) +
         lines + '\n';
}

}  // namespace

std::string_view name(Subject subject) { return subjects[static_cast<std::size_t>(subject)]; }
std::string_view name(Named named) { return namings[static_cast<std::size_t>(named)]; }

Named named(const Mutant& mutant, const Trial& trial) {
  if (trial.outcome != Outcome::killed || trial.diagnosis.empty()) return Named::nothing;
  if (diagnosable(mutant).names.empty()) return Named::no_hypothesis;
  const auto wanted = split_at_commas(diagnosable(mutant).names);
  const DiagnosisNames found = names_in_diagnosis(trial.diagnosis);
  if (found.first.empty()) return Named::unexplained;
  const auto says_it = [&](const std::string& one) {
    return std::find(wanted.begin(), wanted.end(), one) != wanted.end();
  };
  if (std::any_of(found.first.begin(), found.first.end(), says_it)) return Named::first;
  return says_it(found.second) ? Named::second : Named::wrongly;
}

void NamingScore::add(Named named) {
  outputs += named == Named::nothing ? 0 : 1;
  first += named == Named::first ? 1 : 0;
  second += named == Named::second ? 1 : 0;
  wrongly += named == Named::wrongly ? 1 : 0;
  unexplained += named == Named::unexplained ? 1 : 0;
  no_hypothesis += named == Named::no_hypothesis ? 1 : 0;
}

NamingScore naming_score(const Detection& run, Subject subject, Written written) {
  NamingScore score;
  for (const Trial& trial : run.trials) {
    const Mutant* const mutant = mutant_named(trial.mutant);
    if (trial.policy != "attest" || mutant == nullptr || !was_written(*mutant, written)) continue;
    if (diagnosable(*mutant).subject == subject) score.add(named(*mutant, trial));
  }
  return score;
}

ShrinkScore shrink_score(const Detection& run) {
  ShrinkScore score;
  std::vector<std::int64_t> requests, trials;
  for (const Trial& trial : run.trials) {
    if (trial.policy != "attest" || trial.shrunk_requests == 0) continue;
    requests.push_back(trial.shrunk_requests);
    trials.push_back(trial.shrunk_trials);
    score.largest_fixture = std::max(score.largest_fixture, trial.shrunk_bytes);
  }
  score.cases = static_cast<std::int64_t>(requests.size());
  score.requests = median_of(std::move(requests));
  score.trials = median_of(std::move(trials));
  return score;
}

std::string share(std::int64_t part, std::int64_t whole) {
  std::string text = std::to_string(part) + " of " + std::to_string(whole);
  // Rounded down: 100 % is all of them.
  if (whole > 0) text += " (" + std::to_string(100 * part / whole) + " %)";
  return text;
}

std::string explained_text(const Detection& run) {
  std::string text;
  for (const Subject subject :
       {Subject::metadata, Subject::address, Subject::mask, Subject::arithmetic}) {
    const NamingScore score = naming_score(run, subject);
    if (score.outputs > 0) text += "diagnosis, " + line_of(name(subject), score) + '\n';
  }
  const NamingScore together = sum_of(run, located);
  if (together.outputs > 0) {
    text += "diagnosis, " + line_of("metadata, addresses and masks together", together) + '\n';
  }
  const NamingScore later = sum_of(run, located, Written::after_the_oracles);
  if (later.outputs > 0 && later.outputs < together.outputs) {
    text += "diagnosis, " + line_of("of these written after the oracles were fixed", later) + '\n';
  }
  text += mutant_lines(run);
  const ShrinkScore shrunk = shrink_score(run);
  if (shrunk.cases > 0) text += shrunk_sentence(shrunk) + '\n';
  return text;
}

std::string explained_markdown(const Detection& run) {
  std::string rows;
  const auto add = [&](std::string_view label, const NamingScore& score) {
    if (score.outputs == 0) return;
    rows += row({std::string(label), std::to_string(score.outputs),
                 share(score.with_hypothesis(), score.outputs),
                 share(score.first, score.with_hypothesis()), std::to_string(score.second),
                 std::to_string(score.wrongly), std::to_string(score.unexplained)});
  };
  for (const Subject subject :
       {Subject::metadata, Subject::address, Subject::mask, Subject::arithmetic}) {
    add(name(subject), naming_score(run, subject));
  }
  add("**metadata, addresses, masks**", sum_of(run, located));
  const NamingScore later = sum_of(run, located, Written::after_the_oracles);
  if (later.outputs > 0) {
    add("of these, written before the oracles were fixed",
        sum_of(run, located, Written::before_the_oracles));
    add("written after", later);
  }
  const ShrinkScore shrunk = shrink_score(run);
  if (rows.empty() && shrunk.cases == 0) return "";
  std::string text = "## Explained and made smaller\n\n";
  if (!rows.empty()) {
    text +=
        "Killed mutants with a wrong output, by what they are about; the names that say what each "
        "one does are a table (`expected_diagnoses.cpp`).\nAll of these mutants were in the "
        "catalogue when the last hypotheses were written, so this is no measure of mistakes nobody "
        "has seen; [campaigns](campaigns.md) has a blind one.\n\n| about | wrong outputs | a "
        "hypothesis says it | named first, of those | "
        "second | another named | unexplained |\n" +
        rule_line(7) + rows + '\n' + misnamed(run);
  }
  if (shrunk.cases > 0) text += shrunk_sentence(shrunk) + "\n\n";
  return text;
}

const Diagnosable& diagnosable(const Mutant& mutant) {
  static constexpr Diagnosable of_the_call{"", Subject::metadata, "metadata"};
  const auto table = expected_diagnoses();
  const auto at = std::find_if(table.begin(), table.end(), [&](const Diagnosable& one) {
    return mutant.name.find(one.part) != std::string::npos;
  });
  if (at != table.end()) return *at;
  static constexpr Diagnosable none{"", Subject::arithmetic, ""};
  return is_in_the_call(mutant) ? of_the_call : none;
}

}  // namespace attest
