#include "property_tests/report/explain.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>

#include "cli/commands.hpp"
#include "contracts/rules.hpp"

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
  const auto text = explain_text(options.subject, out);
  if (!text) throw std::invalid_argument(unknown_subject(options.subject));
  const bool rule = find_rule(options.subject) != nullptr;
  out.print(!options.json ? *text : rule ? rules_json(options.subject) : faults_json());
  return {};
}

}  // namespace

void add_explain(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("explain", "List the rules, or say why one exists and show it broken");
  auto options = std::make_shared<Options>();
  command->add_option("subject", options->subject, "A rule, a metadata fault, or 'faults'");
  command->add_flag("--json", options->json, "A JSON array instead of text");
  command->callback(
      [options, &chosen] { chosen.action = [options] { return explain(*options); }; });
}

}  // namespace attest
