#include "property_tests/report/explain.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "cli/commands.hpp"

namespace attest {
namespace {

struct Options {
  std::string subject;
  bool json = false;
};

Ending explain(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  if (options.subject.empty()) {
    out.print(options.json ? rules_json() : rules_text(out));
    return {};
  }
  if (options.subject == "faults") {
    out.print(options.json ? faults_json() : faults_text(out));
    return {};
  }
  if (options.subject == "names") {
    out.print(options.json ? names_json() : names_text(out));
    return {};
  }
  const auto text = explain_text(options.subject, out);
  if (!text) throw std::invalid_argument(unknown_subject(options.subject));
  out.print(options.json ? explain_json(options.subject) : *text);
  return {};
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "explain", "List the rules, or say what a name means that a report prints");
  auto options = std::make_shared<Options>();
  command->add_option(
      "subject", options->subject,
      "A rule, a fault or any other name that a report prints; 'faults' and 'names' list those");
  command->add_flag("--json", options->json, "A JSON array instead of text");
  command->callback(
      [options, &chosen] { chosen.action = [options] { return explain(*options); }; });
}

}  // namespace attest
