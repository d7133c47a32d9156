#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/judge.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attest {

/// Words of --rules.
inline const std::map<std::string, RulesMode>& rules_modes() {
  static const std::map<std::string, RulesMode> modes = {
      {"enforce", RulesMode::enforce}, {"report", RulesMode::report}, {"off", RulesMode::off}};
  return modes;
}

/// Bounds of a flag's value, both taken.
struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
};

/// The sum of two such numbers is an index still.
inline constexpr std::uint64_t most_cases = (std::uint64_t{1} << 62) - 1;

/// A flag that takes a whole number in decimal digits: no sign, no octal, nothing clamped. What is
/// outside `range` is a usage error that names the flag, the word and the bounds.
CLI::Option* add_whole(CLI::App& command, const std::string& flag, WholeRange range,
                       const std::string& says, std::function<void(std::uint64_t)> store);

/// The same into a variable, whose value now is the default.
template <class Integer>
CLI::Option* add_whole(CLI::App& command, const std::string& flag, Integer& target,
                       WholeRange range, const std::string& says);

/// A flag that takes seconds, `least` to a year; not NaN. `target` holds the default.
CLI::Option* add_seconds(CLI::App& command, const std::string& flag,
                         std::chrono::milliseconds& target, std::chrono::milliseconds least,
                         const std::string& says);

/// Refuses two of the files that a command reads or writes to be one; pipes and devices may be. A
/// folder stands for the .json and .jsonl files below it.
/// `named`: flag and path, inputs first, empty where the flag was not given. Call it before any is
/// opened. \throws std::invalid_argument "--record and --junit are both out.xml"
void refuse_one_file_twice(const std::vector<std::pair<std::string, std::string>>& named);

/// Makes an empty value of any flag or argument of any command a usage error: mostly a shell
/// variable that is not set. Call it when all are added.
void refuse_empty_values(CLI::App& app);

/// A flag that takes a selector of backends.
CLI::Option* add_selector(CLI::App& command, std::string& target, const std::string& says);

}  // namespace attest
