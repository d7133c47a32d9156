#include <algorithm>
#include <map>
#include <set>

#include "property_tests/mutants/detection.hpp"
#include "property_tests/mutants/explained.hpp"
#include "property_tests/mutants/markdown_cells.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> list(all_mutants().begin(), all_mutants().end());
  return list;
}

const Mutant* mutant_named(const std::string& name) {
  for (const Mutant& one : mutants()) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::set<std::int64_t> contexts_of(const Detection& run, std::string_view policy) {
  std::set<std::int64_t> contexts;
  for (const Trial& trial : run.trials) {
    if (trial.policy == policy) contexts.insert(trial.keys);
  }
  return contexts;
}

/// The command without the flags that only say where to write.
std::string without_files(std::string command) {
  for (const char* const flag : {" --record ", " --junit ", " --markdown "}) {
    const std::size_t at = command.find(flag);
    if (at == std::string::npos) continue;
    const std::size_t value = at + std::string_view(flag).size();
    command.erase(at, std::min(command.find(' ', value), command.size()) - at);
  }
  return command;
}

std::string head(const Detection& run) {
  std::string text =
      "# Detection power\n\nWritten by `attest mutants --markdown` from a recorded run; do not "
      "edit. "
      "Revision " +
      run.revision + ", " + run.compiler + ", " + run.cpu + ", " + std::to_string(run.cores) +
      " cores.\nAMX kernels ran emulated, HIP kernels on the host engine; nothing here ran on a "
      "GPU. "
      "The commands:\n\n";
  for (const std::string& command : run.commands) text += "    " + without_files(command) + '\n';
  if (run.missing > 0) {
    text +=
        "\n**Cut short: " + std::to_string(run.missing) + " of the planned trials are missing.**\n";
  }
  return text +
         "\nA *mutant* is a kernel, a call, a step or a launcher with one deliberate mistake "
         "(`property_tests/mutants/`). It is *killed* when an oracle, a\nrule or a relation says "
         "no "
         "to it and, on the same case, yes to the kernel without it. *Equivalent*: it computes "
         "what "
         "it should, with a\nreason. *By a test of its own*: no case of a stream can show it; the "
         "test is named below and not part of the kill rate.\n\n";
}

std::string by_class(const Detection& run) {
  const auto contexts = contexts_of(run, "attest");
  if (contexts.empty()) return "";
  std::map<std::string, std::map<std::int64_t, Score>> classes, sites;
  std::map<std::int64_t, Score> all, before, later;
  for (const Trial& trial : run.trials) {
    const Mutant* const mutant = mutant_named(trial.mutant);
    if (trial.policy != "attest" || mutant == nullptr) continue;
    classes[std::string(name(mutant->shows))][trial.keys].add(trial);
    sites[std::string(name(mutant->site))][trial.keys].add(trial);
    all[trial.keys].add(trial);
    (mutant->later() ? later : before)[trial.keys].add(trial);
  }
  std::string text =
      "## Killed, by class and context length\n\nLive requests have about as many keys as "
      "the column says (512: up to as many); of the later cases of a stream every fourth has one "
      "such request beside short ones.\nKilled of those that can be.\n\n";
  std::vector<std::string> header = {"class"};
  for (const std::int64_t keys : contexts) header.push_back(keys_in_words(keys));
  text += row(header) + rule_line(header.size());
  const auto add = [&](const std::string& label, std::map<std::int64_t, Score>& scores) {
    std::vector<std::string> cells = {label};
    for (const std::int64_t keys : contexts) cells.push_back(rate(scores[keys]));
    text += row(cells);
  };
  for (auto& [label, scores] : classes) add(label, scores);
  for (auto& [label, scores] : sites) add("at: " + label, scores);
  add("**all**", all);
  if (!later.empty()) {
    add("written before the oracles were fixed", before);
    add("written after", later);
  }
  std::vector<std::string> equivalent = {"equivalent"}, elsewhere = {"by a test of its own"},
                           not_run = {"not run here"}, clean = {"false failures on honest kernels"};
  for (const std::int64_t keys : contexts) {
    equivalent.push_back(std::to_string(all[keys].equivalent));
    elsewhere.push_back(std::to_string(all[keys].elsewhere));
    not_run.push_back(std::to_string(all[keys].not_run));
    clean.push_back(std::to_string(all[keys].false_failures) + " in " +
                    std::to_string(all[keys].honest_cases));
  }
  return text + row(equivalent) + row(elsewhere) + row(not_run) + row(clean) + '\n';
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string by_oracle(const Detection& run) {
  std::map<std::string, std::int64_t> first, any;
  std::vector<std::int64_t> cases, milliseconds;
  for (const Trial& trial : run.trials) {
    if (trial.policy != "attest" || trial.outcome != Outcome::killed) continue;
    ++first[trial.killed_by.starts_with("rule ") ? "a rule" : trial.killed_by];
    for (const std::string& oracle : trial.oracles) ++any[oracle];
    cases.push_back(trial.cases);
    milliseconds.push_back(static_cast<std::int64_t>(trial.seconds * 1000));
  }
  std::string text =
      "## What killed them\n\nThe first to say no; in brackets, how many outputs it "
      "refused among those that were looked at.\n\n| oracle | first | refused |\n|---|---|---|\n";
  for (const auto& [oracle, count] : first) {
    text += row(
        {oracle, std::to_string(count), any.contains(oracle) ? std::to_string(any[oracle]) : "-"});
  }
  text += "\nCases to the first kill: median " + std::to_string(median(cases)) + "; time: median " +
          std::to_string(median(milliseconds)) + " ms.";
  return text + "\n\n";
}

std::string public_bugs(const Detection& run) {
  const auto contexts = contexts_of(run, "attest");
  if (contexts.empty()) return "";
  const std::vector<HandedBug> bugs = all_handed_bugs();
  const auto outcomes = bugs_in(run, *contexts.begin(), "attest", bugs);
  std::map<std::string, std::int64_t> counts;
  for (const BugOutcome& one : outcomes) ++counts[std::string(name(one.outcome))];
  std::string text =
      "## The public bugs\n\nAll " + std::to_string(bugs.size()) + " of the list, none left out:";
  for (const auto& [word, count] : counts) text += ' ' + std::to_string(count) + ' ' + word + ';';
  text.back() = '.';
  text += " *not run*: nothing stands for it, with the reason. Contexts of " +
          keys_in_words(*contexts.begin()) +
          " keys.\n\n| thread | what goes wrong | class | site | stands for it | outcome | first "
          "said by |\n"
          "|---|---|---|---|---|---|---|\n";
  for (const BugOutcome& one : outcomes) {
    const HandedBug& bug = *one.bug;
    std::string stands(bug.stands);
    if (!bug.why.empty()) stands += (stands.empty() ? "" : "; ") + std::string(bug.why);
    const std::string by = one.trial == nullptr           ? "-"
                           : one.trial->killed_by.empty() ? one.trial->says
                                                          : one.trial->killed_by;
    text += row({std::string(bug.source), escaped(std::string(bug.says)),
                 std::string(name(bug.kind)), std::string(name(bug.site)), escaped(stands),
                 std::string(name(one.outcome)), escaped(by)});
  }
  return text + '\n';
}

std::string not_killed(const Detection& run) {
  std::map<std::string, std::set<std::string>> lines;
  for (const Trial& trial : run.trials) {
    if (trial.policy != "attest" || trial.outcome == Outcome::killed) continue;
    const std::string word(name(trial.outcome));
    const std::string where =
        trial.outcome == Outcome::survived ? " at " + keys_in_words(trial.keys) : "";
    lines[word].insert("* `" + trial.mutant + "`" + where + ": " +
                       (trial.says.empty() ? counted(trial.cases, "case") : trial.says));
  }
  if (lines.empty()) return "";
  std::string text = "## Not killed by the run\n\n";
  for (const auto& [word, list] : lines) {
    text += word + ":\n\n";
    for (const std::string& line : list) text += line + '\n';
    text += '\n';
  }
  return text;
}

}  // namespace

std::string detection_markdown(const Detection& run) {
  return head(run) + by_class(run) + by_oracle(run) + explained_markdown(run) + policy_table(run) +
         public_bugs(run) + not_killed(run);
}

}  // namespace attest
