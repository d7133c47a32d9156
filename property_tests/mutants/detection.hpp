#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/mutants/trial.hpp"

namespace attest {

/// What a campaign found, with what is needed to say where it comes from.
struct Detection {
  std::vector<std::string> commands;  ///< as typed
  std::string revision, compiler, cpu;
  std::int64_t cores = 0;
  std::vector<Trial> trials;
  /// Trials that the commands plan and that are not among these: a run was cut short.
  std::int64_t missing = 0;
  std::vector<std::string> cut_short;  ///< a sentence for each recorded run that was
};

/// Trials counted by what became of them.
struct Score {
  std::int64_t killed = 0, survived = 0, equivalent = 0, elsewhere = 0, not_run = 0;
  std::int64_t honest_cases = 0, false_failures = 0;
  void add(const Trial& trial);
  /// Mutants that had to be caught.
  std::int64_t counted() const { return killed + survived; }
  std::int64_t trials() const { return counted() + equivalent + elsewhere + not_run; }
};

/// Records cut short, equivalent mutants that were caught, survivors, false failures: one line
/// each; empty = none.
std::vector<std::string> complaints(const Detection& run);

/// What became of a public bug in one context: its stand-ins' trials taken together.
struct BugOutcome {
  const HandedBug* bug = nullptr;
  Outcome outcome = Outcome::survived;
  const Trial* trial = nullptr;  ///< of the stand-in that says most; may be null
};
/// Killed where every stand-in that ran and can show it was.
std::vector<BugOutcome> bugs_in(const Detection& run, std::int64_t keys, std::string_view policy,
                                const std::vector<HandedBug>& bugs);

/// Tables for a terminal.
std::string detection_text(const Detection& run);
/// docs/detection.md.
std::string detection_markdown(const Detection& run);
/// The part of it that compares with the policies; empty where none was tried.
std::string policy_table(const Detection& run);
/// A testsuite for each context and policy.
std::string detection_junit(const Detection& run);

/// Lines of a record, a JSON object each: the header, with how many trials are planned; a trial;
/// the last, which a run that was killed does not reach.
std::string header_line(const Detection& run);
std::string trial_line(const Trial& trial);
std::string summary_line(bool interrupted);
/// All lines of a record.
std::string detection_json(const Detection& run);
/// Reads records, one after the other, and adds them to `run`. Those of older versions do not say
/// what was planned and count as whole. \throws FixtureError naming `file` and the line.
void add_recorded(std::string_view text, std::string_view file, Detection& run);

}  // namespace attest
