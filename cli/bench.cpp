#include "property_tests/bench/bench.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <stdexcept>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/report/near_names.hpp"

namespace attest {
namespace {

struct Options {
  std::vector<std::string> groups;
  bool json = false;
  bool gate = false;
};

void check_names(const std::vector<std::string>& chosen) {
  std::vector<std::string> known;
  for (const BenchGroup& group : bench_groups()) known.emplace_back(group.id);
  for (const std::string& name : chosen) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw std::invalid_argument("no benchmark '" + name + "'" + did_you_mean(name, known));
  }
}

Ending bench(const Options& options) {
  check_names(options.groups);
  const Console out = Console::of(STDOUT_FILENO, "standard output");
  const Console err = Console::of(STDERR_FILENO, "standard error");
  std::vector<Measurement> all;
  for (const BenchGroup& group : bench_groups()) {
    const auto named = std::find(options.groups.begin(), options.groups.end(), group.id);
    if (!options.groups.empty() && named == options.groups.end()) continue;
    if (interrupted()) break;
    err.print("measuring " + std::string(group.says) + "\n");
    const std::vector<Measurement> part = group.measure();
    all.insert(all.end(), part.begin(), part.end());
  }
  out.print(options.json ? bench_json(all) : bench_text(all, out));
  if (interrupted()) return {exit_interrupted};
  const bool missed = std::any_of(all.begin(), all.end(), [](const Measurement& m) {
    return m.is_ratio() && !m.meets_target();
  });
  return {options.gate && missed ? exit_expectation : 0};
}

}  // namespace

void add_bench(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("bench", "Measure the harness itself");
  auto options = std::make_shared<Options>();
  std::string names;
  for (const BenchGroup& group : bench_groups()) names += " " + std::string(group.id);
  command->add_option("groups", options->groups, "Only these:" + names);
  command->add_flag("--json", options->json, "One JSON object instead of a table");
  command->add_flag("--gate", options->gate,
                    "7 when a ratio within this run misses its target; times never gate");
  command->callback([options, &chosen] { chosen.action = [options] { return bench(*options); }; });
}

}  // namespace attest
