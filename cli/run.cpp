#include "property_tests/run.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <memory>
#include <optional>

#include "backends/hip/graph_plan.hpp"
#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/case_stream.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/lattice_screen.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/explain.hpp"
#include "property_tests/required_engines.hpp"
#include "property_tests/run_devices.hpp"
#include "property_tests/run_screen.hpp"
#include "property_tests/step_faults.hpp"

namespace attest {
namespace {

struct Options {
  RunPlan plan;
  std::string backend, shard = "1/1", rules, profile = "generated", memory, recipe, device = "0",
                       record, junit;
  std::optional<std::int64_t> cases, one_case;
  bool json = false, verbose = false, quiet = false, expect_caught = false;
  std::vector<std::string> arguments;
};

/// The lattice and the long contexts are what they are: a flag that would be passed over is
/// refused.
void refuse_flags_of_other_profiles(const CLI::App& command, const Options& options) {
  const Profile profile = profile_from_name(options.profile).value_or(Profile::generated);
  if (command.count("--memory") > 0 && profile != Profile::large_kv) {
    throw CLI::ValidationError("--memory", "is of --profile large-kv");
  }
  if (profile == Profile::generated) return;
  for (const char* const flag : {"--seed", "--fault", "--recipe", "--max-kv", "--max-requests"}) {
    if (command.count(flag) == 0) continue;
    throw CLI::ValidationError(flag, "is of generated cases, not of --profile " + options.profile);
  }
}

void finish_plan(Options& options) {
  RunPlan& plan = options.plan;
  plan.backends = backends_to_run(options.backend);
  plan.all_must_run = !options.backend.empty();
  plan.shard = parse_shard(options.shard);
  plan.profile = profile_from_name(options.profile)
                     .value_or(Profile::generated);  // add_run has refused others
  // The lattice has calls that a policy speaks against; what it asks is what the kernel computes.
  const bool lattice = plan.profile == Profile::large_kv;
  if (options.rules.empty()) options.rules = lattice ? "report" : "enforce";
  plan.rules = rules_modes().at(options.rules);
  if (plan.profile != Profile::generated) plan.count = std::int64_t{1} << 20;  // all there are
  if (options.cases) plan.count = *options.cases;
  if (!options.memory.empty()) {
    plan.memory = bytes_from_text(options.memory).value_or(0);  // add_run has refused what is none
    ::setenv("ATTEST_KV_MEMORY", "dense", 1);                   // of workers too
  }
  check_environment();
  plan.stop = &interrupted();
  if (!plan.fault.empty() && find_metadata_fault(plan.fault) == nullptr) {
    throw std::invalid_argument(
        find_step_fault(plan.fault)
            ? plan.fault +
                  " is a mistake between two steps, and a generated case has one: it is a "
                  "fixture's (attest replay)"
            : unknown_subject(plan.fault));
  }
  if (!options.recipe.empty()) plan.recipe = recipe_from_name(options.recipe);
  plan.all_devices = options.device == "all";
  plan.devices = parse_devices(options.device);
  if (!plan.run.graph.empty()) hip::graph_plan(plan.run.graph);  // throws where it says nothing
  if (options.one_case) {
    plan.first = *options.one_case;
    plan.count = 1;
  }
  if (options.expect_caught) plan.max_failures = 1;
  if (plan.run.form == "2d" && plan.run.kv_splits > 1) {
    throw std::invalid_argument("--form 2d walks the keys once; --kv-splits " +
                                std::to_string(plan.run.kv_splits) + " contradicts it");
  }
  if (plan.run.form == "3d" && plan.run.kv_splits == 1) {
    throw std::invalid_argument("--form 3d splits the keys; --kv-splits 1 contradicts it");
  }
  check_plan(plan);
}

RecordHeader header_of(const Options& options) {
  const RunPlan& plan = options.plan;
  RecordHeader header{.command = "run",
                      .arguments = options.arguments,
                      .seed = plan.seed,
                      .first = plan.first,
                      .count = plan.count,
                      .shard = options.shard,
                      .rules = options.rules,
                      .required = required_engines(),
                      .backends = {},
                      .machine = this_machine()};
  for (const Backend* backend : plan.backends) header.backends.emplace_back(backend->name());
  return header;
}

/// True, with a sentence each, when ATTEST_REQUIRE asks for what this run cannot or did not give.
bool lacks(const std::vector<std::string>& sentences, const Console& err) {
  for (const std::string& sentence : sentences) err.print("attest: " + sentence + "\n");
  return !sentences.empty();
}

/// Whether every backend failed a case, for deliberate faults.
int caught_code(const RunSummary& summary, const Console& out) {
  int code = 0;
  for (const BackendTally& tally : summary.tallies) {
    if (tally.failed() > 0) continue;
    out.print("not caught: " + tally.backend + "\n");
    code = exit_expectation;
  }
  if (code == 0) out.print("every selected backend was caught\n");
  return code;
}

std::string opening(const Options& options) {
  const RunPlan& plan = options.plan;
  const std::string range =
      std::to_string(plan.first) + ", " + std::to_string(plan.first + plan.count) + ")";
  const bool whole_profile =
      plan.profile != Profile::generated && !options.cases && !options.one_case;
  return "attest run  " +
         (plan.profile == Profile::generated ? "seed " + std::to_string(plan.seed)
                                             : "profile " + options.profile) +
         (whole_profile ? "" : "  cases [" + range) + "  shard " + options.shard + "  rules " +
         options.rules + "\n";
}

void write_junit(const Options& options, JunitCollector& collector, const RunSummary& summary) {
  for (const BackendTally& tally : summary.tallies) {
    if (tally.cases() == 0) collector.report.add_unavailable(tally.backend, tally.note);
  }
  write_atomically(options.junit, collector.report.xml(run_properties(header_of(options))));
}

Ending run(Options& options) {
  refuse_one_file_twice({{"--record", options.record}, {"--junit", options.junit}});
  print_in_flight_on_fatal_signals();
  report_killed_runs();
  finish_plan(options);
  // With --json the record is all that standard output holds.
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const Console out = options.json ? err : Console::of(STDOUT_FILENO, "standard output");
  if (lacks(unmet_requirements(required_engines()), err)) return {exit_code(Verdict::unavailable)};
  std::optional<RecordFile> record;
  if (options.json || !options.record.empty()) {
    record.emplace(options.json ? "-" : options.record);
    record->line(header_json(header_of(options)));
  }
  RunScreen screen(out, Progress(options.quiet ? Console::silent() : err), options.plan.max_saved,
                   options.verbose);
  JunitCollector junit;
  std::vector<RunObserver*> observers = {&screen};
  std::optional<RunRecorder> recorder;
  if (record) observers.push_back(&recorder.emplace(*record));
  if (!options.junit.empty()) observers.push_back(&junit);
  LatticeScreen lattice;
  if (options.plan.profile == Profile::large_kv) observers.push_back(&lattice);

  out.print(opening(options));
  const RunSummary summary = run_cases(options.plan, observers);
  out.print(run_summary_text(summary, out) + lattice.text());
  for (const Backend* backend : options.plan.backends) {
    if (const std::string text = left_out(options.plan, *backend); !text.empty()) {
      out.print(text + "\n");
    }
  }
  int code = summary.interrupted ? exit_interrupted : exit_code(summary.tallies);
  if (!summary.interrupted && options.expect_caught) code = caught_code(summary, out);
  if (lacks(engines_not_run(required_engines(), summary.tallies), err) && code == 0) {
    code = exit_code(Verdict::unavailable);
  }
  if (!options.junit.empty()) write_junit(options, junit, summary);
  if (summary.error) std::rethrow_exception(summary.error);
  if (record) record->line(summary_json(summary.tallies, code, summary.interrupted));
  return {code, summary.abandoned};
}

void add_selection(CLI::App& command, Options& options) {
  RunPlan& plan = options.plan;
  add_selector(command, options.backend,
               "Backends by name or prefix, comma-separated; what is named must run. "
               "Default: every honest backend that can run here");
  command
      .add_option("--profile", options.profile,
                  "generated: cases of a seed; large-kv: the boundaries of 32-bit offsets, with "
                  "--rules=report; long-context: 128k to 1M keys")
      ->check([](const std::string& text) {
        return profile_from_name(text) ? ""
                                       : text + " is none of generated, large-kv, long-context";
      })
      ->capture_default_str();
  command
      .add_option(
          "--memory", options.memory,
          "Of large-kv: real memory for K and V together, as 20GiB; cells that need more are "
          "left out. Default: sparse pools, which take none")
      ->type_name("BYTES")
      ->check([](const std::string& text) {
        return bytes_from_text(text) ? "" : text + " is no size such as 800MiB or 20GiB";
      });
  add_whole(command, "--seed", plan.seed, {0, std::numeric_limits<std::uint64_t>::max()},
            "Of the case stream");
  CLI::Option* cases =
      add_whole(command, "--cases", {1, most_cases}, "Cases per backend; 200, or all of a profile",
                [&](std::uint64_t count) { options.cases = static_cast<std::int64_t>(count); });
  CLI::Option* first =
      add_whole(command, "--first", plan.first, {0, most_cases}, "Index of the first one");
  add_whole(command, "--case", {0, most_cases}, "Only this one",
            [&](std::uint64_t index) { options.one_case = static_cast<std::int64_t>(index); })
      ->excludes(cases)
      ->excludes(first);
  command.add_option("--shard", options.shard, "Part i of n of the same cases")
      ->type_name("i/n")
      ->capture_default_str();
  command
      .add_option("--rules", options.rules,
                  "enforce: a broken rule rejects; report: listed, and the kernel runs; off")
      ->check(CLI::IsMember(rules_modes()));
  command.add_option("--fault", plan.fault,
                     "Put this mistake into every call (attest explain faults lists them)");
  add_whole(command, "--max-kv", plan.max_kv, {1, max_fixture_tokens}, "Longest KV of a case");
  add_whole(command, "--max-requests", plan.max_requests, {1, max_fixture_requests},
            "Largest batch");
  command
      .add_option("--recipe", options.recipe,
                  "Data of every case; default: drawn, each case with data that could fail")
      ->check(CLI::IsMember({"normal", "recall", "needle", "features", "shifted"}));
  command.add_option("--form", plan.run.form, "Force a kernel form")
      ->check(CLI::IsMember({"2d", "3d"}));
  add_whole(command, "--kv-splits", {1, 1024}, "Force a split count",
            [&](std::uint64_t count) { plan.run.kv_splits = static_cast<int>(count); });
  command
      .add_option("--graph", plan.run.graph,
                  "Replay each call in a graph captured with the same, short or long lengths; then "
                  ",eager: another call in between, and ,inside: lengths made by the graph")
      ->type_name("HOW")
      ->check(
          [](const std::string& text) { return text.empty() ? "an empty word says nothing" : ""; });
  command
      .add_option("--device", options.device,
                  "GPU by index, several as 0,2, or all: cases are dealt out in turn")
      ->envname("ATTEST_DEVICE")
      ->capture_default_str();
}

void add_limits(CLI::App& command, Options& options) {
  RunPlan& plan = options.plan;
  using std::chrono::milliseconds;
  add_seconds(command, "--budget", plan.budget, milliseconds(0),
              "Seconds for the whole run, shared by the backends; 0: no limit");
  add_seconds(command, "--time-limit", plan.time_limit, milliseconds(1), "Seconds for one launch");
  add_whole(command, "--max-failures", plan.max_failures, {0, most_cases},
            "Leave a backend after this many; 0: never");
  command.add_flag("--fail-fast", plan.fail_fast, "The first failure ends the run");
  command.add_flag("--expect-caught", options.expect_caught,
                   "For deliberate faults: 0 when every backend fails a case, else 7");
  add_seconds(command, "--shrink-time", plan.shrink_budget, milliseconds(0),
              "Seconds to shrink a failure; 0: do not");
  add_whole(command, "--max-saved", plan.max_saved, {0, most_cases},
            "Failures per backend to shrink, save and print");
  add_whole(command, "--jobs", plan.jobs, {0, 1024}, "Cases at a time; 0: one per core");
}

void add_outputs(CLI::App& command, Options& options) {
  command.add_option("--out", options.plan.out, "Folder for the fixtures of failures")
      ->capture_default_str();
  CLI::Option* record =
      command
          .add_option("--record", options.record, "Write the run record, one JSON object a line")
          ->type_name("FILE");
  command.add_flag("--json", options.json, "The run record on standard output, text on the other")
      ->excludes(record);
  command.add_option("--junit", options.junit, "Write JUnit XML")->type_name("FILE");
  command.add_flag("--verbose", options.verbose, "Print every reproduction line before its launch");
  command.add_flag("--quiet", options.quiet, "No progress");
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("run", "Judge generated cases on backends");
  auto options = std::make_shared<Options>();
  options->arguments = chosen.arguments;
  options->plan.program = chosen.program;
  add_selection(*command, *options);
  add_limits(*command, *options);
  add_outputs(*command, *options);
  command->callback([command, options, &chosen] {
    refuse_flags_of_other_profiles(*command, *options);
    chosen.action = [options] { return run(*options); };
  });
}

}  // namespace attest
