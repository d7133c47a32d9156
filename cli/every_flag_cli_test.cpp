#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cli/test_support.hpp"

// What must hold of every flag of every command: they are read from --help.

namespace attest {
namespace {

struct Flag {
  std::string name, type;  ///< "--seed", "N"
};

const std::vector<std::string>& commands() {
  static const std::vector<std::string> all = {"doctor",  "run",     "replay", "check",
                                               "fixture", "explain", "bench",  "mutants"};
  return all;
}

/// The flags of a command that take a value.
std::vector<Flag> flags_of(const std::string& command) {
  static const std::regex flag("^  (?:-.,)?(--[a-z-]+) ([A-Za-z/_:\\[\\]]+)");
  std::vector<Flag> flags;
  std::istringstream help(attest_cli({command, "--help"}).out);
  for (std::string line; std::getline(help, line);) {
    std::smatch match;
    // Of a flag without a value a sentence follows, after spaces.
    if (!std::regex_search(line, match, flag) || match[2] == "Excludes:") continue;
    flags.push_back({match[1], match[2]});
  }
  return flags;
}

/// Its positional arguments, where it must have some.
std::vector<std::string> with_arguments(const std::string& command) {
  if (command == "replay" || command == "fixture") return {command, "absent.json"};
  return {command};
}

Finished given(const std::string& command, const std::string& flag, const std::string& value) {
  std::vector<std::string> arguments = with_arguments(command);
  arguments.insert(arguments.end(), {flag, value});
  return attest_cli(arguments);
}

TEST(EveryFlag, IsFoundInTheHelp) {
  std::size_t all = 0;
  for (const std::string& command : commands()) all += flags_of(command).size();
  EXPECT_GT(all, 45U);
}

/// Mostly a shell variable that is not set.
TEST(EveryFlag, RefusesAnEmptyValueByName) {
  for (const std::string& command : commands()) {
    for (const Flag& flag : flags_of(command)) {
      for (const char* const empty : {"", " "}) {
        const Finished run = given(command, flag.name, empty);
        EXPECT_EQ(run.code, 64) << command << " " << flag.name << run.out;
        EXPECT_TRUE(has(run.err, flag.name)) << command << " " << flag.name << ": " << run.err;
      }
    }
  }
  // Of flags without a value too.
  for (const auto& [command, flag] : {std::pair{"mutants", "--later="},
                                      {"mutants", "--list="},
                                      {"check", "--group="},
                                      {"run", "--json="},
                                      {"run", "--fail-fast="},
                                      {"run", "--cases="}}) {
    const Finished run = attest_cli({command, flag});
    EXPECT_EQ(run.code, 64) << command << flag << run.out;
    EXPECT_TRUE(has(run.err, std::string(flag) + " an empty value says nothing")) << run.err;
  }
  for (const char* const command : {"replay", "check", "fixture", "explain", "bench"}) {
    const Finished run = attest_cli({command, ""});
    EXPECT_EQ(run.code, 64) << command << run.out;
    EXPECT_TRUE(has(run.err, "an empty value")) << command << ": " << run.err;
  }
}

TEST(EveryFlag, ThatTakesANumberTakesDecimalDigitsOnly) {
  std::size_t numbers = 0;
  for (const std::string& command : commands()) {
    for (const Flag& flag : flags_of(command)) {
      // The types of the library's own numbers, which it reads in its own way.
      EXPECT_FALSE(flag.type == "INT" || flag.type == "UINT" || flag.type == "FLOAT")
          << command << " " << flag.name;
      if (flag.type != "N") continue;
      ++numbers;
      for (const char* const word :
           {"1e3", "+5", "-1", " 7", "7 ", "0x10", "1'000", "1_000", "18446744073709551616"}) {
        const Finished run = given(command, flag.name, word);
        EXPECT_EQ(run.code, 64) << command << " " << flag.name << " " << word << run.out;
        EXPECT_TRUE(has(run.err, flag.name + ": '" + word + "' is not a whole number from "))
            << command << ": " << run.err;
      }
    }
  }
  EXPECT_GE(numbers, 17U);
}

class OneFile : public testing::Test, protected ScratchFolder {};

TEST_F(OneFile, InAFolderThatIsReadIsNotWrittenOnto) {
  const std::string text = "{}";
  const std::string file = save("a.json", text);
  const std::string all = folder.string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"replay", all, "--record", file},
                                             {"replay", all, "--junit", file},
                                             {"check", all, "--junit", file},
                                             {"check", all, "--html", file},
                                             {"fixture", all, "--out", file},
                                             {"run", "--out", all, "--record", file},
                                             {"run", "--out", all, "--junit", file}}) {
    const Finished run = attest_cli(arguments);
    EXPECT_EQ(run.code, 64) << arguments[0] << run.out;
    EXPECT_TRUE(has(run.err, file + " is one of the files in " + all)) << run.err;
    EXPECT_EQ(text_of(file), text) << arguments[0];
  }
}

/// Results that nobody got are no success.
TEST(EveryCommand, WhoseStandardOutputIsFullExitsSeventyFour) {
  std::vector<std::string> lines = {"--version",
                                    "--help",
                                    "doctor",
                                    "doctor --support --backend scalar",
                                    "run --backend scalar.decode --cases 1 --max-kv 16 --quiet",
                                    "run --backend scalar.decode --cases 1 --max-kv 16 --json",
                                    "replay fixtures/corpus/accept/decode.gqa.json",
                                    "check fixtures/corpus/captured",
                                    "check fixtures/corpus/captured --json",
                                    "check fixtures/corpus/captured --steps",
                                    "check fixtures/corpus/captured --against-spec",
                                    "fixture fixtures/corpus/captured/sglang_calls.jsonl --line 22 "
                                    "--trials 0",
                                    "explain",
                                    "explain names",
                                    "explain hard --json",
                                    "mutants --list",
                                    "mutants --mutant rule: --json",
                                    "mutants --class metadata --calls 20",
                                    "bench rules --json"};
  for (const std::string& command : commands()) lines.push_back(command + " --help");
  for (const std::string& line : lines) {
    const Finished run =
        Subprocess({"/bin/sh", "-c",
                    "cd " ATTEST_SOURCE_DIR " && exec " ATTEST_BINARY " " + line + " > /dev/full"})
            .finish();
    EXPECT_EQ(run.code, 74) << line << run.err;
    EXPECT_TRUE(has(run.err, "No space left on device")) << line << ": " << run.err;
  }
}

}  // namespace
}  // namespace attest
