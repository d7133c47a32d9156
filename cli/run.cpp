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
#include "cli/run_command.hpp"
#include "contracts/printable.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/case_stream.hpp"
#include "property_tests/check_text.hpp"
#include "property_tests/found_failures.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/known_failures.hpp"
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

void finish_plan(RunCommand& options) {
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
            : unknown_fault(plan.fault));
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

RecordHeader header_of(const RunCommand& options) {
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
    if (tally.failed() + tally.known > 0) continue;
    out.print("not caught: " + tally.backend + "\n");
    code = exit_expectation;
  }
  if (code == 0) out.print("every selected backend was caught\n");
  return code;
}

std::string opening(const RunCommand& options) {
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

void write_junit(const RunCommand& options, JunitCollector& collector, const RunSummary& summary) {
  for (const BackendTally& tally : summary.tallies) {
    if (tally.cases() == 0) collector.report.add_unavailable(tally.backend, tally.note);
  }
  write_atomically(options.junit, collector.report.xml(run_properties(header_of(options))));
}

/// What earlier runs saved is judged first, by a run that is asked for new cases at large.
bool judges_found(const RunCommand& options) {
  return options.found == "replay" && !options.one_case && !options.expect_caught &&
         options.plan.shard.index == 1;
}

/// Puts it into the plan, and says of which files that is not possible. \returns their number
std::int64_t look_for_found(RunCommand& options, RecordFile* record, const Console& out) {
  RunPlan& plan = options.plan;
  if (!judges_found(options)) return 0;
  FoundFailures found = read_found(plan.out, plan.backends, plan.rules);
  for (const UnreadInput& unread : found.unread) {
    out.print("found     cannot be read: " + printable(unread.file) + ": " +
              printable(unread.reason) + "\n");
    if (record != nullptr) record->line(unread_json(unread));
  }
  plan.found = std::move(found.all);
  return static_cast<std::int64_t>(found.unread.size());
}

/// Expired entries fail a run before it begins.
bool has_expired(const KnownFailures& known, const Console& err) {
  return lacks(known.expired(today()), err);
}

/// An entry that can meet no case hides nothing, and is told: nobody would miss it.
void warn_of_misspelt(const KnownFailures& known, const RunPlan& plan, const Console& err) {
  std::vector<std::string_view> names;
  for (const Backend* backend : all_backends()) names.push_back(backend->name());
  for (const Backend* backend : plan.backends) names.push_back(backend->name());
  for (const std::string& sentence : known.misspelt(names)) err.print("attest: " + sentence + "\n");
}

int code_of(const RunCommand& options, const RunSummary& summary, const Console& out) {
  if (summary.interrupted) return exit_interrupted;
  if (options.expect_caught) return caught_code(summary, out);
  return exit_code(summary.tallies);
}

Ending run(RunCommand& options) {
  refuse_one_file_twice(
      {{"--known", options.known}, {"--record", options.record}, {"--junit", options.junit}});
  require_folder(options.plan.out);
  refuse_one_file_twice({{"--out", options.plan.out.string()},
                         {"--record", options.record},
                         {"--junit", options.junit}});
  print_in_flight_on_fatal_signals();
  report_killed_runs();
  finish_plan(options);
  // With --json the record is all that standard output holds.
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const Console out = options.json ? err : Console::of(STDOUT_FILENO, "standard output");
  if (lacks(unmet_requirements(required_engines()), err)) return {exit_code(Verdict::unavailable)};
  std::unique_ptr<KnownFailures> known;
  if (!options.known.empty()) {
    known = KnownFailures::from_file(options.known);
    options.plan.known = known.get();
    if (has_expired(*known, err)) return {exit_expectation};
    warn_of_misspelt(*known, options.plan, err);
  }
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
  const std::int64_t unread = look_for_found(options, record ? &*record : nullptr, out);
  const RunSummary summary = run_cases(options.plan, observers);
  out.print(run_summary_text(summary, out) + lattice.text());
  for (const Backend* backend : options.plan.backends) {
    if (const std::string text = left_out(options.plan, *backend); !text.empty()) {
      out.print(text + "\n");
    }
  }
  int code = code_of(options, summary, out);
  if (lacks(engines_not_run(required_engines(), summary.tallies), err) && code == 0) {
    code = exit_code(Verdict::unavailable);
  }
  if (known && !summary.interrupted && lacks(known->contradicted(), err) && code == 0) {
    code = exit_expectation;
  }
  if (!options.junit.empty()) write_junit(options, junit, summary);
  if (summary.error) std::rethrow_exception(summary.error);
  if (record) record->line(summary_json(summary.tallies, code, summary.interrupted, unread));
  return {code, summary.abandoned};
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("run", "Judge generated cases on backends");
  auto options = std::make_shared<RunCommand>();
  options->arguments = chosen.arguments;
  options->plan.program = chosen.program;
  add_run_flags(*command, *options);
  command->callback([command, options, &chosen] {
    refuse_flags_of_other_profiles(*command, *options);
    options->plan.isolate = command->count("--time-limit") > 0;
    chosen.action = [options] { return run(*options); };
  });
}

}  // namespace attest
