#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <vector>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "contracts/printable.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/check_calls.hpp"
#include "property_tests/check_groups.hpp"
#include "property_tests/check_html.hpp"
#include "property_tests/check_steps.hpp"
#include "property_tests/check_text.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/record.hpp"
#include "property_tests/spec_differences.hpp"

namespace attest {
namespace {

struct Options {
  std::string source = "-", junit, html, since;
  std::int64_t limit = 20;  // blocks; 0: all
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

/// What became of the reading.
struct Reading {
  std::int64_t calls = 0, unread = 0, left_out = 0;
  bool stopped = false;
  std::exception_ptr broken;  ///< the machine's error that ended it

  bool early() const { return stopped || broken != nullptr; }
  /// `judged`: the exit code of what was read.
  int code(int judged) const {
    if (stopped || interrupted()) return exit_interrupted;
    return unread > 0 ? exit_bad_input : judged;
  }
};

/// Hands every call to `each` and what cannot be read to `unread` and to standard error. Whatever
/// ends the reading, what was judged is told before anything is thrown.
Reading read_source(
    const Options& options, const std::function<void(const CapturedCall&)>& each,
    const UnreadSink& unread = [](const UnreadInput&) {}) {
  const Console err = Console::of(STDERR_FILENO, "standard error");
  Reading reading;
  const auto stop_if_asked = [] {
    if (interrupted()) throw Stop{};
  };
  try {
    reading.left_out = read_calls(
        options.source,
        [&](const CapturedCall& call) {
          each(call);
          ++reading.calls;
        },
        since_of(options),
        [&](const UnreadInput& input) {
          stop_if_asked();  // a signal ends standard input in the middle
          ++reading.unread;
          if (options.limit == 0 || reading.unread <= options.limit) {
            err.print("attest: " + printable(place_of(input) + ": " + input.reason) + "\n");
          }
          unread(input);
        },
        stop_if_asked);
    reading.stopped = interrupted();
  } catch (const Stop&) {
    reading.stopped = true;
  } catch (const OutputClosed&) {
    throw;
  } catch (...) {
    reading.broken = std::current_exception();
    err.print("attest: ended after " + counted(reading.calls, "call") + "\n");
  }
  if (options.limit > 0 && reading.unread > options.limit) {
    err.print("attest: ... and " + counted(reading.unread - options.limit, "more place") +
              " that could not be read\n");
  }
  return reading;
}

/// "... and 7 more (--limit 0 shows all)", where there are more than --limit prints.
std::string more_than(const Options& options, std::int64_t blocks) {
  if (options.limit == 0 || blocks <= options.limit) return "";
  return "... and " + std::to_string(blocks - options.limit) + " more (--limit 0 shows all)\n";
}

/// What --since passed over, and where that is why nothing was judged.
std::string left_out_text(const Options& options, const Reading& reading) {
  if (reading.left_out == 0) return "";
  const std::string text = counted(reading.left_out, "file") +
                           " left out, last written more than " + options.since + " ago (--since)";
  return text + (reading.calls > 0 ? ".\n" : ": nothing was left to judge.\n");
}

std::string reading_text(const Options& options, const Reading& reading) {
  std::string text = left_out_text(options, reading);
  if (reading.unread > 0) text += counted(reading.unread, "place") + " could not be read.\n";
  if (reading.stopped) return text + "Ended early: interrupted.\n";
  return reading.early() ? text + "Ended early.\n" : text;
}

/// The end of a command that printed its sums.
Ending ended(const Reading& reading, int judged) {
  if (reading.broken) std::rethrow_exception(reading.broken);
  return {reading.code(judged)};
}

/// Every call beside what its signature's lowering builds for the same step.
/// Nothing new is no mistake of whoever asks every hour.
int with_nothing_new(const Options& options, int code) {
  return code == exit_usage && !options.since.empty() ? exit_code(Verdict::unsupported) : code;
}

Ending compare_source(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  SpecSummary summary;
  std::int64_t blocks = 0;
  const Reading reading = read_source(options, [&](const CapturedCall& call) {
    const SpecComparison comparison = compare_with_spec(call);
    summary.add(comparison);
    const std::string text = spec_text(comparison);
    if (text.empty() || (options.limit > 0 && blocks++ >= options.limit)) return;
    out.print(text);
  });
  out.print(more_than(options, blocks) + "\n" + summary.text() + reading_text(options, reading));
  return ended(reading, with_nothing_new(options, summary.exit_code()));
}

/// The calls of each layer beside one another.
Ending check_layers(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  CallsByLayer calls;
  Reading reading = read_source(options, [&](const CapturedCall& call) { calls.add(call); });
  CheckedLayers layers = calls.check(&interrupted());
  reading.stopped = interrupted();
  layers.early |= reading.early();
  out.print(steps_text(layers, options.limit) + reading_text(options, reading));
  return ended(reading, steps_exit_code(layers.steps));
}

/// Prints and sums up what the rules say.
class CheckReport {
 public:
  explicit CheckReport(const Options& options) : options_(options) {}

  void add(const CapturedCall& call) {
    const CheckedCall checked = check_call(call);
    summary_.add(checked);
    if (!options_.junit.empty()) junit_.add(as_case_result(checked, options_.labels));
    if (!options_.html.empty()) html_.add(checked);
    if (options_.json) return out_.print(checked_call_json(checked) + "\n");
    // Of a labelled set the surprises are of interest.
    if (options_.labels && !checked.surprises()) return;
    if (options_.group) return groups_.add(checked);
    const std::string text = checked_call_text(checked, out_);
    if (text.empty()) return;
    if (options_.limit > 0 && shown_++ >= options_.limit) return;
    out_.print(text);
  }

  void add(const UnreadInput& unread) {
    ++summary_.unread;
    if (!options_.junit.empty()) junit_.add_unread(place_of(unread), unread.reason);
    if (!options_.html.empty()) html_.add(unread);
    if (options_.json) out_.print(unread_json(unread) + "\n");
  }

  Ending end(const Reading& reading) {
    summary_.early = reading.early();
    summary_.left_out = reading.left_out;
    const int code =
        with_nothing_new(options_, reading.code(check_exit_code(summary_, options_.labels)));
    if (!options_.json) {
      print_sums();
      out_.print(left_out_text(options_, reading));
    } else if (!reading.broken) {
      out_.print(check_summary_json(summary_, code) + "\n");
    }
    if (!options_.junit.empty()) write_atomically(options_.junit, junit_.xml(build_properties()));
    if (!options_.html.empty()) {
      write_atomically(options_.html, html_.page(summary_, options_.source));
    }
    return ended(reading, code);
  }

 private:
  void print_sums() const {
    out_.print(groups_.text(out_, options_.limit) + more_than(options_, shown_));
    out_.print("\n" + check_summary_text(summary_, options_.labels, out_));
  }

  const Options& options_;
  const Console out_ = Console::of(STDOUT_FILENO, "standard output");
  CheckSummary summary_;
  CallGroups groups_;
  JunitReport junit_;
  CheckHtml html_;
  std::int64_t shown_ = 0;
};

Ending check_source(const Options& options) {
  refuse_one_file_twice({{"the calls", options.source == "-" ? "/dev/stdin" : options.source},
                         {"--junit", options.junit},
                         {"--html", options.html}});
  CheckReport report(options);
  const Reading reading = read_source(
      options, [&](const CapturedCall& call) { report.add(call); },
      [&](const UnreadInput& unread) { report.add(unread); });
  return report.end(reading);
}

/// Flags that say what to do with verdicts.
std::vector<CLI::Option*> add_reports(CLI::App& command, const std::shared_ptr<Options>& options) {
  return {command.add_flag("--expect-labels", options->labels,
                           "7 when a judged call differs from its own label, 2 when one without a "
                           "label is wrong, else 0; prints both"),
          command.add_flag("--group", options->group, "Print calls with the same findings once"),
          command.add_flag("--json", options->json, "One JSON object a line instead of text"),
          command.add_option("--junit", options->junit, "Write JUnit XML")->type_name("FILE"),
          command.add_option("--html", options->html, "Write a summary as one HTML file")
              ->type_name("FILE")};
}

}  // namespace

void add_check(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("check", "Check captured kernel calls against the rules");
  auto options = std::make_shared<Options>();
  command->add_option("source", options->source, "A .json or .jsonl file, a folder, or - for stdin")
      ->capture_default_str();
  const std::vector<CLI::Option*> reports = add_reports(*command, options);
  CLI::Option* spec =
      command->add_flag("--against-spec", options->spec,
                        "Print where each call is not what a correct framework builds for its "
                        "step, field by field; 1 when some call differs");
  CLI::Option* steps =
      command->add_flag("--steps", options->steps,
                        "Compare the calls of each layer with one another: scale, cap, window, "
                        "dtypes, graph against eager; 2 when they cannot all be right");
  // What compares calls judges none: there are no verdicts to report.
  spec->excludes(steps);
  for (CLI::Option* const of_verdicts : reports) {
    spec->excludes(of_verdicts);
    steps->excludes(of_verdicts);
  }
  command
      ->add_option("--since", options->since,
                   "Of a folder, the files written within this time: 90s, 30m, 2h, 7d")
      ->type_name("AGE")
      ->check([](const std::string& text) {
        return age_from_text(text) ? "" : text + " is no age such as 90s, 30m, 2h or 7d";
      });
  add_whole(*command, "--limit", options->limit, {.least = 0, .most = most_cases},
            "Calls (with --group: groups, with --steps: layers) to print; 0: all");
  command->callback([options, &chosen] {
    std::error_code none;
    if (!options->since.empty() && !std::filesystem::is_directory(options->source, none)) {
      throw CLI::ValidationError(
          "--since is about the files of a folder, and " +
          (options->source == "-" ? std::string("standard input") : options->source) + " is none");
    }
    chosen.action = [options] {
      if (options->spec) return compare_source(*options);
      return options->steps ? check_layers(*options) : check_source(*options);
    };
  });
}

}  // namespace attest
