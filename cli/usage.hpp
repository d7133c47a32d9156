#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace attest {

/// What is wrong with the command line, naming the word and what it may have been meant to be.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          std::span<char* const> arguments);

/// The table of exit codes, for the end of every --help.
std::string exit_code_table();

}  // namespace attest
