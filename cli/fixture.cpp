#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "contracts/verdict.hpp"
#include "property_tests/captured_fixture.hpp"
#include "property_tests/check_calls.hpp"
#include "property_tests/report/atomic_file.hpp"
#include "property_tests/report/console.hpp"
#include "property_tests/report/near_names.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

struct Options {
  std::string source, out;
  std::optional<std::uint64_t> line;
  CapturedFixtureOptions shrink;
};

/// The call in that line; without a line the only one. \throws FixtureError where it is no call
CapturedCall call_at(const Options& options) {
  std::vector<CapturedCall> calls;  // at most two: of several none is meant
  const auto is_it = [&](std::int64_t line) {
    return !options.line || line == 0 || static_cast<std::uint64_t>(line) == *options.line;
  };
  read_calls(
      options.source,
      [&](const CapturedCall& call) {
        if (is_it(call.line) && calls.size() < 2) calls.push_back(call);
      },
      std::nullopt,
      [&](const UnreadInput& unread) {
        if (is_it(unread.line)) report_unread({}, unread);
      });
  const std::string line = std::to_string(options.line.value_or(0));
  if (calls.empty()) throw FixtureError(options.source + ": has no call in line " + line);
  if (calls.size() == 1) return calls.front();
  throw std::invalid_argument(options.source + " holds several calls: --line N");
}

/// \throws std::invalid_argument for a word that is not empty and no rule's name
void require_a_rule(const std::string& id) {
  if (id.empty() || find_rule(id) != nullptr) return;
  std::vector<std::string> ids;
  for (const Rule& rule : all_rules()) ids.emplace_back(rule.id);
  throw std::invalid_argument("--rule: no rule is called " + id + did_you_mean(id, ids));
}

Ending write_fixture(const Options& options) {
  refuse_one_file_twice({{"the calls", options.source == "-" ? "/dev/stdin" : options.source},
                         {"--out", options.out}});
  require_a_rule(options.shrink.rule);
  const Console err = Console::of(STDERR_FILENO, "standard error");
  const auto made = fixture_of_captured(call_at(options), options.shrink);
  if (const auto* const why = std::get_if<std::string>(&made)) {
    err.print("attest: no fixture: " + printable(*why) + "\n");
    return {exit_code(Verdict::unsupported)};
  }
  const auto& result = std::get<CapturedFixture>(made);
  const std::string text = to_json(result.fixture);
  if (options.out.empty()) {
    Console::of(STDOUT_FILENO, "standard output").print(text);
  } else {
    write_atomically(options.out, text);
  }
  err.print(printable(result.fixture.story) + "\n" + counted(result.trials, "trial") + ", " +
            counted(result.steps, "step") + ", on " + result.fixture.backend + "\n");
  if (!result.no_symptom.empty()) {
    err.print("the rule alone shows it: " + printable(result.no_symptom) + "\n");
  }
  if (!result.not_shrunk.empty()) {
    err.print("as large as the call: " + printable(result.not_shrunk) + "\n");
  }
  return {0};
}

}  // namespace

void add_fixture(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "fixture", "Turn a captured call into the smallest fixture that shows what is wrong with it");
  auto options = std::make_shared<Options>();
  command->add_option("captured", options->source, "A .json or .jsonl file, or - for stdin")
      ->required();
  add_whole(*command, "--line", {1, most_cases}, "Which line; needed where there are several calls",
            [options](std::uint64_t line) { options->line = line; });
  command->add_option("--rule", options->shrink.rule,
                      "The rule to keep; by default the first that rejects");
  add_whole(
      *command, "--trials", {0, 100'000}, "Smaller cases to try; 0: the call as it is (400)",
      [options](std::uint64_t trials) { options->shrink.max_trials = static_cast<int>(trials); });
  command->add_option("-o,--out", options->out, "The file to write; standard output without it")
      ->type_name("FILE");
  command->callback(
      [options, &chosen] { chosen.action = [options] { return write_fixture(*options); }; });
}

}  // namespace attest
