#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/unread_input.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// How to replay fixtures.
struct ReplayPlan {
  std::string backend;               ///< selector instead of the fixture's; empty = the fixture's
  std::vector<std::string> plugins;  ///< libraries that a fixture may name as its backend
  std::optional<RulesMode> rules;    ///< only this mode; absent = enforced, then reported
  RunOptions run;
  std::string program = "attest";                ///< of repro lines
  std::chrono::milliseconds time_limit{60'000};  ///< of one launch in a worker
  bool isolate = false;                          ///< every launch is in one
  const std::atomic<bool>* stop = nullptr;       ///< ends between two judgements
};

/// The .json files that `paths` name, in order; a directory stands for every one below it, by name.
/// Folders that cannot be listed go to `unread`. \throws FixtureError for a directory without any
std::vector<std::filesystem::path> fixture_files(const std::vector<std::filesystem::path>& paths,
                                                 const UnreadSink& unread = {});

/// Judges a fixture from each side (with the fault, without it), on each backend it names or, when
/// it names none, on every available honest backend of its signature, in each rules mode. Of a
/// trace of two steps the first is judged as lowered and must pass; the sides are the second's.
/// Every result says what was expected. A library that the fixture names is loaded only where
/// plan.plugins has it: files bring no code. \throws FixtureError
void replay_file(const std::filesystem::path& file, const ReplayPlan& plan,
                 const std::function<void(const CaseResult&)>& each);

/// Whether the fixture was for the backend that was asked for.
bool says_something(const CaseResult& result);

/// 0 when every verdict is as expected, those aside that say nothing (7 where all of them do); 4
/// when the only ones that are not are unavailable here; 7 otherwise. \pre results is not empty
int replay_exit_code(const std::vector<CaseResult>& results);

}  // namespace attest
