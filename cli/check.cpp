#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/check_calls.hpp"
#include "property_tests/check_text.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/record.hpp"

namespace attest {
namespace {

struct Options {
  std::string source = "-", junit;
  std::int64_t limit = 20;
  bool labels = false, json = false;
};

/// Ends the reading of calls; not an error.
struct Stop {};

Ending check_source(const Options& options) {
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  CheckSummary summary;
  JunitReport junit;
  std::int64_t shown = 0;
  std::int64_t not_shown = 0;
  try {
    read_calls(options.source, [&](const CapturedCall& call) {
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
      const std::string text = checked_call_text(checked, out);
      if (text.empty()) return;
      if (options.limit > 0 && shown == options.limit) {
        ++not_shown;
        return;
      }
      ++shown;
      out.print(text);
    });
  } catch (const Stop&) {
  }
  int code = interrupted() ? exit_interrupted : check_exit_code(summary, options.labels);
  if (options.json) {
    out.print(check_summary_json(summary, code) + "\n");
  } else {
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
  command->add_option("--limit", options->limit, "Calls to print; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object a line instead of text");
  command->add_option("--junit", options->junit, "Write JUnit XML")->type_name("FILE");
  command->callback(
      [options, &chosen] { chosen.action = [options] { return check_source(*options); }; });
}

}  // namespace attest
