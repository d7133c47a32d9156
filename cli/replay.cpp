#include "property_tests/replay.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "contracts/printable.hpp"
#include "contracts/verdict.hpp"
#include "fixtures/fixture.hpp"
#include "property_tests/in_flight.hpp"
#include "property_tests/replay_text.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/failure_text.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/record.hpp"

namespace attest {
namespace {

struct Options {
  std::vector<std::filesystem::path> paths;
  ReplayPlan plan;
  std::string rules, record, junit;
  bool json = false, verbose = false;
  std::vector<std::string> arguments;
};

struct Closing {
  std::int64_t files = 0;
  std::int64_t unread = 0;  ///< files that are not fixtures
  bool early = false;
};

/// Nothing was judged: then that is what was not expected.
void expect_all(std::vector<CaseResult>& results) {
  for (CaseResult& result : results) {
    result.unexpected = "expected " + std::string(name(result.expected.value_or(Verdict::pass))) +
                        ", got unsupported (" + result.judgement.reason + ")";
  }
}

std::string closing(const std::vector<CaseResult>& results, const Closing& end) {
  std::int64_t differing = 0, judged = 0;
  for (const CaseResult& result : results) {
    differing += result.unexpected.empty() ? 0 : 1;
    judged += says_something(result) ? 1 : 0;
  }
  std::string text = "\n" + not_judged_text(results) + counted(end.files, "fixture") + ", " +
                     counted(judged, "verdict");
  if (end.early) text += ", ended early";
  if (end.unread > 0) text += ", " + std::to_string(end.unread) + " of the files could not be read";
  if (differing > 0) text += ", " + std::to_string(differing) + " not as expected";
  if (differing == 0 && end.unread == 0 && !end.early) text += ", all as expected";
  return text + ".\n";
}

/// Those that say nothing of the backend only in full: the closing lines count them.
void print_file(std::span<const CaseResult> all, bool in_full, const Console& out) {
  std::vector<CaseResult> results;
  std::ranges::copy_if(all, std::back_inserter(results), [&](const CaseResult& result) {
    return in_full || says_something(result) || !result.unexpected.empty();
  });
  if (results.empty()) return;
  out.print(replay_text(results, out));
  for (const CaseResult& result : results) {
    // What cannot run here has said so in a line.
    const bool tells =
        !result.unexpected.empty() && result.judgement.verdict != Verdict::unavailable;
    if (in_full || tells) out.print("\n" + failure_text(result, out) + "\n");
  }
}

/// Each fixture's by themselves.
void print_files(std::span<const CaseResult> results, const Console& out) {
  while (!results.empty()) {
    const auto end = std::ranges::find_if(results, [&](const CaseResult& result) {
      return result.fixture != results.front().fixture;
    });
    const auto count = static_cast<std::size_t>(end - results.begin());
    print_file(results.first(count), false, out);
    results = results.subspan(count);
  }
}

Ending replay(Options& options) {
  for (const std::filesystem::path& path : options.paths) {
    refuse_one_file_twice({{"the fixtures", path.string()},
                           {"--record", options.record},
                           {"--junit", options.junit}});
  }
  print_in_flight_on_fatal_signals();
  report_killed_runs();
  check_environment();
  if (!options.rules.empty()) options.plan.rules = rules_modes().at(options.rules);
  options.plan.stop = &interrupted();
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const Console out = options.json ? err : Console::of(STDOUT_FILENO, "standard output");
  if (!options.plan.backend.empty()) select_backends(options.plan.backend);
  std::int64_t unread = 0;
  const std::vector<std::filesystem::path> files =
      fixture_files(options.paths, [&](const UnreadInput& folder) {
        err.print("attest: " + printable(folder.file + ": " + folder.reason) + "\n");
        ++unread;
      });
  RecordHeader header{.command = "replay",
                      .arguments = options.arguments,
                      .count = static_cast<std::int64_t>(files.size()),
                      .rules = options.rules.empty() ? "enforce,report" : options.rules,
                      .required = required_engines(),
                      .machine = this_machine()};
  std::optional<RecordFile> record;
  if (options.json || !options.record.empty()) {
    record.emplace(options.json ? "-" : options.record);
    record->line(header_json(header));
  }
  std::vector<CaseResult> results;
  JunitReport junit;
  std::exception_ptr broken;
  for (const std::filesystem::path& file : files) {
    const std::size_t before = results.size();
    try {
      replay_file(file, options.plan, [&](CaseResult result) {
        result.index = static_cast<std::int64_t>(results.size());
        result.fixture = file.string();
        if (record) record->line(case_json(result));
        junit.add(result);
        results.push_back(std::move(result));
      });
    } catch (const FixtureError& error) {
      // The other files are judged all the same.
      err.print(std::string("attest: ") + error.what() + "\n");
      ++unread;
    } catch (...) {
      // The machine, not the file: what was judged is told first.
      broken = std::current_exception();
      err.print("attest: ended in " + printable(file.string()) + "\n");
    }
    print_file(std::span(results).subspan(before), options.verbose, out);
    if (broken) break;
  }
  if (!results.empty() && std::ranges::none_of(results, says_something)) {
    expect_all(results);
    if (!options.verbose) print_files(results, out);
  }
  const int code = interrupted() ? exit_interrupted
                   : unread > 0  ? exit_bad_input
                                 : replay_exit_code(results);
  out.print(closing(results, {.files = static_cast<std::int64_t>(files.size()),
                              .unread = unread,
                              .early = broken || interrupted()}));
  if (!options.junit.empty()) write_atomically(options.junit, junit.xml(run_properties(header)));
  if (broken) std::rethrow_exception(broken);
  if (record) record->line(replay_summary_json(results, code, interrupted()));
  return {code};
}

}  // namespace

void add_replay(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("replay",
                         "Judge fixtures, with their fault and without, against what they "
                         "promise");
  auto options = std::make_shared<Options>();
  options->arguments = chosen.arguments;
  options->plan.program = chosen.program;
  command->add_option("paths", options->paths, "Fixtures, or folders of them")->required();
  add_selector(*command, options->plan.backend,
               "Backends instead of the fixture's, by name or prefix");
  command
      ->add_option("--plugin", options->plan.plugins,
                   "A library that fixtures may name as their backend: without this none is loaded")
      ->type_name("FILE")
      ->allow_extra_args(false);  // one a flag: paths may follow
  command->add_option("--rules", options->rules, "Only this mode: enforce, report or off")
      ->check(CLI::IsMember(rules_modes()));
  add_seconds(*command, "--time-limit", options->plan.time_limit, std::chrono::milliseconds(1),
              "Seconds for one launch; given: each is in a worker process");
  CLI::Option* record =
      command->add_option("--record", options->record, "Write the run record")->type_name("FILE");
  command->add_flag("--json", options->json, "The record on standard output")->excludes(record);
  command->add_option("--junit", options->junit, "Write JUnit XML")->type_name("FILE");
  command->add_flag("--verbose", options->verbose, "Print every verdict in full");
  command->callback([command, options, &chosen] {
    options->plan.isolate = command->count("--time-limit") > 0;
    chosen.action = [options] { return replay(*options); };
  });
}

}  // namespace attest
