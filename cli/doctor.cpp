#include "property_tests/report/doctor.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "backends/registry.hpp"
#include "cli/commands.hpp"
#include "cli/environment.hpp"
#include "contracts/verdict.hpp"

namespace attest {
namespace {

struct Options {
  bool json = false;
  bool faults = false;
};

Ending doctor(const Options& options) {
  const Diagnosis diagnosis = examine(all_backends(), required_engines());
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  out.print(options.json ? doctor_json(diagnosis) : doctor_text(diagnosis, options.faults, out));
  return {diagnosis.unmet.empty() ? 0 : exit_code(Verdict::unavailable)};
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine can run, and why not");
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "One JSON object instead of text");
  command->add_flag("--faults", options->faults, "List the deliberately faulty backends too");
  command->callback([options, &chosen] { chosen.action = [options] { return doctor(*options); }; });
}

}  // namespace attest
