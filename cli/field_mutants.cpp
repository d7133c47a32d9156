#include "cli/field_mutants.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/report/console.hpp"

namespace attest {
namespace {

/// Ends the trials; not an error.
struct Stop {};

}  // namespace

Ending change_fields(const MutantPlan& plan) {
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  const Console err = Console::of(STDERR_FILENO, "standard error");
  MutantMatrix matrix;
  std::int64_t unexplained = 0, tried = 0;
  const std::atomic<bool>& stop = interrupted();
  try {
    try_mutants(plan, [&](Signature signature, const MutantTrial& trial) {
      if (stop) throw Stop{};
      matrix.add(signature, trial);
      ++tried;
      const std::string surprise = unexplained_outcome(signature, trial);
      if (surprise.empty()) return;
      ++unexplained;
      err.print(surprise + "\n");
    });
  } catch (const Stop&) {
    out.print(matrix.text());
    err.print("attest: interrupted after " + std::to_string(tried) + " of " +
              std::to_string(plan.calls) + " changed calls\n");
    return {exit_interrupted};
  }
  out.print(matrix.text());
  for (const std::string& rule : matrix.unjustified_rules()) {
    ++unexplained;
    err.print(rule + " rejects, and no call that it rejects gives wrong numbers\n");
  }
  return {unexplained > 0 ? exit_expectation : 0};
}

}  // namespace attest
