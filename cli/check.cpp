#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/check_calls.hpp"
#include "property_tests/check_groups.hpp"
#include "property_tests/check_steps.hpp"
#include "property_tests/check_text.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/record.hpp"
#include "property_tests/spec_differences.hpp"

namespace attest {
namespace {

struct Options {
  std::string source = "-", junit, since;
  std::int64_t limit = 20;
  bool labels = false, json = false, group = false, spec = false, steps = false;
};

/// Ends the reading of calls; not an error.
struct Stop {};

/// A file written at that time or later is read; nothing: every file.
std::optional<std::filesystem::file_time_type> since_of(const Options& options) {
  const auto age = age_from_text(options.since);  // add_check has refused what is none
  if (!age) return std::nullopt;
  return std::filesystem::file_time_type::clock::now() - *age;
}

/// Every call beside what its signature's lowering builds for the same step.
Ending compare_source(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  SpecSummary summary;
  read_calls(
      options.source,
      [&](const CapturedCall& call) {
        const SpecComparison comparison = compare_with_spec(call);
        summary.add(comparison);
        out.print(spec_text(comparison));
      },
      since_of(options));
  out.print("\n" + summary.text());
  return {summary.exit_code()};
}

/// The calls of each layer beside one another.
Ending check_layers(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  CallsByLayer calls;
  read_calls(options.source, [&](const CapturedCall& call) { calls.add(call); }, since_of(options));
  const std::vector<CheckedStep> steps = calls.check();
  out.print(steps_text(steps, calls.left_out()));
  return {steps_exit_code(steps)};
}

Ending check_source(const Options& options) {
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  CheckSummary summary;
  CallGroups groups;
  JunitReport junit;
  std::int64_t shown = 0;
  std::int64_t not_shown = 0;
  bool stopped = false;
  const auto judge = [&](const CapturedCall& call) {
    if (interrupted()) throw Stop{};
    const CheckedCall checked = check_call(call);
    summary.add(checked);
    if (!options.junit.empty()) junit.add(as_case_result(checked, options.labels));
    if (options.json) {
      out.print(checked_call_json(checked) + "\n");
      return;
    }
    // Of a labelled set the surprises are of interest.
    if (options.labels && checked.comparison.outcome != LabelOutcome::disagree) return;
    if (options.group) {
      groups.add(checked);
      return;
    }
    const std::string text = checked_call_text(checked, out);
    if (text.empty()) return;
    if (options.limit > 0 && shown == options.limit) {
      ++not_shown;
      return;
    }
    ++shown;
    out.print(text);
  };
  try {
    read_calls(options.source, judge, since_of(options));
  } catch (const Stop&) {
    stopped = true;
  }
  // A signal that ends the reading of standard input throws nothing.
  int code = stopped || interrupted() ? exit_interrupted : check_exit_code(summary, options.labels);
  // Nothing new is no mistake of whoever asks every hour.
  if (code == exit_usage && !options.since.empty()) code = exit_code(Verdict::unsupported);
  if (options.json) {
    out.print(check_summary_json(summary, code) + "\n");
  } else {
    out.print(groups.text(out));
    if (not_shown > 0) {
      out.print("... and " + std::to_string(not_shown) + " more (--limit 0 shows all)\n");
    }
    out.print("\n" + check_summary_text(summary, options.labels, out));
  }
  if (!options.junit.empty()) write_atomically(options.junit, junit.xml(build_properties()));
  return {code};
}

}  // namespace

void add_check(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("check", "Check captured kernel calls against the rules");
  auto options = std::make_shared<Options>();
  command->add_option("source", options->source, "A .json or .jsonl file, a folder, or - for stdin")
      ->capture_default_str();
  command->add_flag("--expect-labels", options->labels,
                    "0 when every judged call agrees with its own label, else 7; prints those that "
                    "do not");
  command->add_flag("--against-spec", options->spec,
                    "Print where each call is not what a correct framework builds for its step, "
                    "field by field; 1 when some call differs");
  command->add_flag("--steps", options->steps,
                    "Compare the calls of each layer with one another: scale, cap, window, dtypes, "
                    "graph against eager; 2 when they cannot all be right");
  command->add_flag("--group", options->group, "Print calls with the same findings once");
  command
      ->add_option("--since", options->since,
                   "Of a folder, the files written within this time: 90s, 30m, 2h, 7d")
      ->type_name("AGE")
      ->check([](const std::string& text) {
        return age_from_text(text) ? "" : text + " is no age such as 90s, 30m, 2h or 7d";
      });
  command->add_option("--limit", options->limit, "Calls to print; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object a line instead of text");
  command->add_option("--junit", options->junit, "Write JUnit XML")->type_name("FILE");
  command->callback([options, &chosen] {
    chosen.action = [options] {
      if (options->spec) return compare_source(*options);
      return options->steps ? check_layers(*options) : check_source(*options);
    };
  });
}

}  // namespace attest
