#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/mutant_matrix.hpp"
#include "property_tests/report/console.hpp"

namespace attest {
namespace {

struct Options {
  std::string kind = "metadata";
  MutantPlan plan;
};

/// Ends the trials; not an error.
struct Stop {};

Ending mutate(const Options& options) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  const Console err = Console::of(STDERR_FILENO, "standard error");
  MutantMatrix matrix;
  std::int64_t unexplained = 0;
  try {
    try_mutants(options.plan, [&](Signature signature, const MutantTrial& trial) {
      if (interrupted()) throw Stop{};
      matrix.add(signature, trial);
      const std::string surprise = unexplained_outcome(signature, trial);
      if (surprise.empty()) return;
      ++unexplained;
      err.print(surprise + "\n");
    });
  } catch (const Stop&) {
    return {exit_interrupted};
  }
  out.print(matrix.text());
  for (const std::string& rule : matrix.unjustified_rules()) {
    ++unexplained;
    err.print(rule + " rejects, and no call that it rejects gives wrong numbers\n");
  }
  return {unexplained > 0 ? exit_expectation : 0};
}

}  // namespace

void add_mutants(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "mutants",
      "Change one field of generated calls at a time: do the rules and the numbers agree?");
  auto options = std::make_shared<Options>();
  command->add_option("--class", options->kind, "What is changed")
      ->check(CLI::IsMember({"metadata"}))
      ->capture_default_str();
  command->add_option("--calls", options->plan.calls, "Changed calls over all signatures")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", options->plan.seed, "Of the generated calls")
      ->capture_default_str();
  command->callback([options, &chosen] { chosen.action = [options] { return mutate(*options); }; });
}

}  // namespace attest
