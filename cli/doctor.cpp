#include "property_tests/report/doctor.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "cli/flags.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/mutants/mutant.hpp"
#include "property_tests/support_table.hpp"

namespace attest {
namespace {

struct Options {
  bool json = false;
  bool faults = false;
  bool support = false;
  std::string backend;
};

/// Those that can answer for a call: nothing that cannot run here, and deliberate faults only where
/// they were asked for.
std::vector<const Backend*> able(std::span<const Backend* const> all, bool with_faults) {
  std::vector<const Backend*> list;
  std::copy_if(all.begin(), all.end(), std::back_inserter(list), [&](const Backend* backend) {
    return (with_faults || !is_deliberate_fault(*backend)) && backend->available();
  });
  return list;
}

Ending doctor(const Options& options) {
  const std::vector<const Backend*> named =
      options.backend.empty() ? std::vector<const Backend*>() : select_backends(options.backend);
  const std::span<const Backend* const> asked =
      options.backend.empty() ? known_backends() : std::span<const Backend* const>(named);
  // A selector takes no deliberate fault that it does not name.
  const bool with_faults = options.faults || !named.empty();
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  if (options.support) {
    out.print(support_text(able(asked, with_faults)));
    return {};
  }
  Diagnosis diagnosis = examine(asked, required_engines());
  if (named.empty()) diagnosis.mutants = static_cast<std::int64_t>(all_mutants().size());
  out.print(options.json ? doctor_json(diagnosis) : doctor_text(diagnosis, with_faults, out));
  return {diagnosis.unmet.empty() ? 0 : exit_code(Verdict::unavailable)};
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine can run, and why not");
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "One JSON object instead of text");
  command->add_flag(
      "--faults", options->faults,
      "List the deliberately faulty backends too; --backend faulty lists those alone");
  command->add_flag("--support", options->support,
                    "A table of features by backend, each cell asked, and why not");
  add_selector(*command, options->backend, "Only these, by name, prefix or a plugin's file");
  command->callback([options, &chosen] { chosen.action = [options] { return doctor(*options); }; });
}

}  // namespace attest
