#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "property_tests/run.hpp"

namespace attest {

/// A failure that an earlier run saved, judged again.
struct FoundAgain {
  std::filesystem::path file;
  CaseResult result;
  bool still_fails = false;
};

/// Judges what earlier runs saved in plan.out of the plan's backends, in the plan's rules mode,
/// before any new case: what failed once is the first to ask. Fixtures of other backends, and files
/// that are no fixtures of a failure, are passed over. Ends when plan.stop is set.
void judge_found_failures(const RunPlan& plan, const std::function<void(const FoundAgain&)>& each);

/// "found     still fails: fixtures/found/x.json (hard): decode 1 req ..." or that it passes now,
/// one line.
std::string in_words(const FoundAgain& found);

}  // namespace attest
