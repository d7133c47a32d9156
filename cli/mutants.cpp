#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "cli/field_mutants.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/fixture_error.hpp"
#include "fixtures/read_file.hpp"
#include "property_tests/mutants/campaign.hpp"
#include "property_tests/mutants/detection.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/build_info.hpp"
#include "property_tests/report/console.hpp"
#include "property_tests/report/machine.hpp"
#include "property_tests/report/record.hpp"

namespace attest {
namespace {

struct Options {
  std::string kind = "all";
  MutantPlan plan;
  std::string contexts = "512", policies, part, later, junit, markdown, record;
  std::vector<std::string> from;
  bool handed = false, json = false, verbose = false, list = false;
  CampaignPlan campaign;
};

std::vector<std::int64_t> contexts_of(const std::string& text) {
  std::vector<std::int64_t> contexts;
  for (const std::string_view word : split_at_commas(text)) {
    const bool digits =
        !word.empty() && word.size() < 8 &&
        std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
    const std::int64_t keys = digits ? std::stoll(std::string(word)) : 0;
    if (keys < 1 || keys > 1'048'576) {
      throw std::invalid_argument("--context: \"" + std::string(word) +
                                  "\" is no number of keys from 1 to 1048576");
    }
    contexts.push_back(keys);
  }
  return contexts;
}

std::vector<const Policy*> policies_of(const std::string& text) {
  std::vector<const Policy*> chosen;
  if (text.empty()) return chosen;
  bool all = false;
  for (const std::string_view word : split_at_commas(text)) {
    const Policy* const policy = find_policy(word);
    all = all || word == "all";
    if (policy == nullptr && word != "all") {
      std::string names;
      for (const Policy& one : all_policies()) names += ", " + std::string(one.name);
      throw std::invalid_argument("no policy is called \"" + std::string(word) +
                                  "\"; there are all" + names);
    }
    if (policy != nullptr) chosen.push_back(policy);
  }
  if (!all) return chosen;
  chosen.clear();
  for (const Policy& policy : all_policies()) chosen.push_back(&policy);
  return chosen;
}

/// What --later chooses: "", "all", "first", "second".
Written written_when(const std::string& later) {
  if (later == "first") return Written::first_batch;
  if (later == "second") return Written::second_batch;
  return later.empty() ? Written::ever : Written::after_the_oracles;
}

Ending list_mutants(const std::vector<const Mutant*>& mutants) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  for (const Mutant* mutant : mutants) {
    out.print(mutant->name + "  " + std::string(name(mutant->shows)) + ", " +
              std::string(name(mutant->site)) + "  " + mutant->source + '\n');
  }
  return {};
}

std::string line_of(const Trial& trial) {
  std::string text = std::string(name(trial.outcome)) + "  " + trial.mutant + "  " +
                     std::to_string(trial.keys) + " keys, " + trial.policy + ": ";
  if (trial.outcome == Outcome::killed) {
    text += trial.killed_by + " after " + std::to_string(trial.cases) + " case(s), " +
            std::to_string(trial.seconds) + " s; ";
  }
  text += trial.says;
  if (!trial.diagnosis.empty()) text += "; " + trial.diagnosis;
  return text + '\n';
}

void write_reports(const Options& options, const Detection& run) {
  if (!options.junit.empty()) write_atomically(options.junit, detection_junit(run));
  if (!options.markdown.empty()) write_atomically(options.markdown, detection_markdown(run));
}

Detection header_of(const Chosen& chosen) {
  const Machine machine = this_machine();
  Detection run{.revision = std::string(build_info().revision),
                .compiler = std::string(build_info().compiler),
                .cpu = machine.cpu,
                .cores = machine.cores};
  std::string command = "attest";
  for (const std::string& word : chosen.arguments) command += ' ' + word;
  run.commands.push_back(std::move(command));
  return run;
}

Ending say(const Options& options, const Detection& run) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  const Console err = Console::of(STDERR_FILENO, "standard error");
  write_reports(options, run);
  (options.json ? err : out).print(detection_text(run));
  const std::vector<std::string> bad = complaints(run);
  for (const std::string& line : bad) err.print(line + '\n');
  return {bad.empty() ? 0 : exit_expectation};
}

Ending from_records(const Options& options) {
  constexpr std::size_t most = std::size_t{256} << 20;
  Detection run;
  for (const std::string& file : options.from)
    add_recorded(read_file_or_pipe(file, most), file, run);
  if (run.trials.empty()) throw FixtureError("--from: no trial was recorded");
  if (!options.record.empty()) write_atomically(options.record, detection_json(run));
  if (options.json) Console::of(STDOUT_FILENO, "standard output").print(detection_json(run));
  return say(options, run);
}

/// The records that were asked for. Lines are written as trials end: a run that is killed leaves
/// those it has.
class Records {
 public:
  explicit Records(const Options& options) {
    if (options.json) files_.emplace_back("-");
    if (!options.record.empty()) files_.emplace_back(options.record);
  }
  void line(const std::string& json) {
    for (RecordFile& file : files_) file.line(json);
  }

 private:
  std::deque<RecordFile> files_;
};

Ending try_all(const Options& options, const Chosen& chosen) {
  const CampaignPlan& plan = options.campaign;
  const Console err = Console::of(STDERR_FILENO, "standard error");
  Detection run = header_of(chosen);
  run.missing = static_cast<std::int64_t>(trial_count(plan));
  Records records(options);
  records.line(header_line(run));
  std::exception_ptr broken;
  try {
    run_campaign(plan, [&](const Trial& trial) {
      run.trials.push_back(trial);
      --run.missing;
      records.line(trial_line(trial));
      if (options.verbose) err.print(line_of(trial));
    });
  } catch (...) {
    // A full disk: what was tried is told first.
    broken = std::current_exception();
  }
  if (!broken) records.line(summary_line(run.missing > 0));
  const Ending ending = say(options, run);
  if (broken) std::rethrow_exception(broken);
  if (run.missing == 0) return ending;
  // What was tried is told; that the rest was not is no complaint about it.
  err.print("attest: interrupted after " + std::to_string(run.trials.size()) + " of " +
            std::to_string(trial_count(plan)) + " trials\n");
  return {exit_interrupted};
}

void refuse_shared_files(const Options& options) {
  std::vector<std::pair<std::string, std::string>> named;
  named.reserve(options.from.size() + 3);
  for (const std::string& file : options.from) named.emplace_back("--from", file);
  named.insert(
      named.end(),
      {{"--record", options.record}, {"--junit", options.junit}, {"--markdown", options.markdown}});
  refuse_one_file_twice(named);
}

Ending mutate(Options options, const Chosen& chosen) {
  refuse_shared_files(options);
  if (options.kind == "metadata") return change_fields(options.plan);
  if (!options.from.empty()) return from_records(options);
  CampaignPlan& plan = options.campaign;
  plan.mutants =
      mutants_of(options.kind, options.part, options.handed, written_when(options.later));
  if (options.list) return list_mutants(plan.mutants);
  plan.contexts = contexts_of(options.contexts);
  plan.policies = policies_of(options.policies);
  plan.trial.stop = &interrupted();
  return try_all(options, chosen);
}

void add_reports(CLI::App& command, Options& options) {
  command.add_flag("--json", options.json, "The record on standard output: JSON, one trial a line");
  command.add_option("--record", options.record, "The same into this file");
  command.add_option("--junit", options.junit, "JUnit XML into this file");
  command.add_option("--markdown", options.markdown, "Tables for docs/ into this file");
  command.add_option("--from", options.from, "Try nothing: report what these records hold");
  command.add_flag("--verbose", options.verbose, "A line for every trial on standard error");
}

/// Flags other than `taken` would be passed over, and are refused.
void refuse_all_but(const CLI::App& command, std::initializer_list<std::string_view> taken,
                    const std::string& why) {
  for (const CLI::Option* const option : command.get_options()) {
    const std::string flag = option->get_name();
    if (option->count() == 0 || std::ranges::find(taken, flag) != taken.end()) continue;
    throw CLI::ValidationError(flag, why);
  }
}

void refuse_unread_flags(const CLI::App& command, const Options& options) {
  if (options.kind == "metadata") {
    return refuse_all_but(
        command, {"--class", "--calls", "--seed"},
        "is not of --class metadata, which changes one field of a call at a time");
  }
  if (command.count("--calls") > 0) throw CLI::ValidationError("--calls", "is of --class metadata");
  if (options.list) {
    return refuse_all_but(command, {"--list", "--class", "--mutant", "--public", "--later"},
                          "is of a run; --list runs nothing");
  }
  if (options.from.empty()) return;
  refuse_all_but(command, {"--from", "--json", "--record", "--junit", "--markdown"},
                 "is of a run; --from reports what runs have recorded");
}

}  // namespace

void add_mutants(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "mutants", "Put every known mistake in front of the oracles: is it caught?");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--class", options->kind,
                   "Which mutants; metadata: one field of generated calls changed at a time")
      ->check(
          CLI::IsMember({"all", "numeric", "trace", "rule-only", "relation", "cost", "metadata"}))
      ->capture_default_str();
  command->add_option("--mutant", options->part, "Only those with this in their name");
  command->add_flag("--public", options->handed,
                    "Only those that stand for a public bug or a generic mutation");
  command
      ->add_flag("--later{all}", options->later,
                 "Only those written after the oracles were fixed; --later=first, --later=second: "
                 "one batch of them")
      ->check(CLI::IsMember({"all", "first", "second"}));
  command->add_flag("--list", options->list, "Their names, and where they come from");
  command->add_option("--context", options->contexts, "Keys of a request, several as 512,4096")
      ->capture_default_str();
  command->add_option("--policy", options->policies,
                      "Judge as a well-known suite does; its name, several, or all");
  TrialPlan& trial = options->campaign.trial;
  add_whole(*command, "--cases", trial.most_cases, {1, most_cases}, "Cases before one survives");
  add_whole(*command, "--seconds", trial.most_seconds, {1, 86'400}, "Seconds before one survives");
  add_whole(*command, "--shrink", trial.shrink_trials, {0, 10'000},
            "Trials to make the killing case smaller; 0: none");
  command->add_flag("--diagnose", trial.diagnose, "Look for the known mistake behind each kill");
  add_whole(*command, "--jobs", options->campaign.jobs, {0, 1024}, "Trials at a time; 0: per core");
  add_whole(*command, "--calls", options->plan.calls, {1, most_cases},
            "Of --class metadata: changed calls");
  add_whole(*command, "--seed", options->plan.seed, {0, std::numeric_limits<std::uint64_t>::max()},
            "Of the generated cases");
  add_reports(*command, *options);
  command->callback([command, options, &chosen] {
    refuse_unread_flags(*command, *options);
    options->campaign.trial.seed = options->plan.seed;
    chosen.action = [options, &chosen] { return mutate(*options, chosen); };
  });
}

}  // namespace attest
