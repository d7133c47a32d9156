#include "cli/usage.hpp"

#include <CLI/CLI.hpp>

#include "contracts/verdict.hpp"
#include "property_tests/report/near_names.hpp"
#include "property_tests/report/tally.hpp"

namespace attest {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The first --word of the arguments that `command` does not have.
std::string unknown_flag(const CLI::App& command, std::span<char* const> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--") break;
    if (argument.size() < 2 || argument[0] != '-') continue;
    // A number below 0 is the value of a flag.
    if (argument[1] == '.' || (argument[1] >= '0' && argument[1] <= '9')) continue;
    const std::string name(argument.substr(0, argument.find('=')));
    if (command.get_option_no_throw(name) == nullptr) return name;
  }
  return "";
}

std::string code_line(int code, std::string_view words) {
  std::string text = "  " + std::to_string(code);
  text.append(text.size() < 6 ? 6 - text.size() : 1, ' ');
  return text + std::string(words) + "\n";
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          std::span<char* const> arguments) {
  if (arguments.empty()) return "no command given; attest --help lists them";
  const std::string first = arguments.front();
  const CLI::App* command = first[0] == '-' ? &app : command_named(app, first);
  if (command == nullptr) {
    return "unknown command '" + first + "'" + did_you_mean(first, command_names(app)) +
           "\nattest --help lists the commands";
  }
  const std::string name = command == &app ? "attest" : "attest " + first;
  const std::string flag =
      unknown_flag(*command, command == &app ? arguments : arguments.subspan(1));
  const std::string help = "\n" + name + " --help lists the flags";
  if (!flag.empty()) {
    return "unknown flag '" + flag + "' of " + name + did_you_mean(flag, flag_names(*command)) +
           help;
  }
  return name + ": " + error.what() + help;
}

std::string exit_code_table() {
  std::string text = "Exit codes (a run over many cases ends with the worst: 6, 1, 2, 4, 3, 5):\n";
  for (const Verdict verdict : all_verdicts) {
    if (verdict == Verdict::hung) continue;
    const std::string_view word = verdict == Verdict::crashed ? "crashed or hung" : name(verdict);
    text += code_line(exit_code(verdict), word);
  }
  text += code_line(exit_expectation, "a verdict or label differs from what was expected");
  text += code_line(exit_usage, "usage: a flag, a name, or nothing selected");
  text += code_line(exit_bad_input, "bad input: a fixture or captured call");
  text += code_line(exit_internal, "internal error of attest");
  text += code_line(exit_io, "input or output failed: a file, the disk, a closed pipe");
  return text + code_line(exit_interrupted, "interrupted (results so far are printed and kept)");
}

}  // namespace attest
