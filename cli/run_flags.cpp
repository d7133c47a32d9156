#include <CLI/CLI.hpp>
#include <limits>

#include "cli/flags.hpp"
#include "cli/run_command.hpp"
#include "fixtures/fixture.hpp"

namespace attest {
namespace {

void add_selection(CLI::App& command, RunCommand& options) {
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
      ->type_name("HOW");
  command
      .add_option("--device", options.device,
                  "GPU by index, several as 0,2, or all: cases are dealt out in turn")
      ->envname("ATTEST_DEVICE")
      ->capture_default_str();
}

void add_limits(CLI::App& command, RunCommand& options) {
  RunPlan& plan = options.plan;
  using std::chrono::milliseconds;
  add_seconds(command, "--budget", plan.budget, milliseconds(0),
              "Seconds for the whole run, shared by the backends; 0: no limit");
  add_seconds(command, "--time-limit", plan.time_limit, milliseconds(1),
              "Seconds for one launch; given: each is in a worker process");
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

void add_outputs(CLI::App& command, RunCommand& options) {
  command.add_option("--out", options.plan.out, "Folder for the fixtures of failures")
      ->capture_default_str();
  command
      .add_option("--found", options.found,
                  "replay: judge what --out holds of earlier failures first; skip: do not")
      ->check(CLI::IsMember({"replay", "skip"}))
      ->capture_default_str();
  command
      .add_option(
          "--known", options.known,
          "Known failures (docs/known_failures.md): told, and no reason to fail, until they "
          "expire or pass")
      ->type_name("FILE");
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

void add_run_flags(CLI::App& command, RunCommand& options) {
  add_selection(command, options);
  add_limits(command, options);
  add_outputs(command, options);
}

void refuse_flags_of_other_profiles(const CLI::App& command, const RunCommand& options) {
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

}  // namespace attest
