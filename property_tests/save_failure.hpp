#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "backends/backend.hpp"
#include "property_tests/judge.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// Limits of one shrink.
struct ShrinkLimits {
  std::chrono::milliseconds budget{10'000};
  int max_trials = 200;
  std::function<bool()> stop;  ///< gives up early; may be empty
};

/// Whether another case fails as `result` does: the same verdict by the same oracle or rule.
bool fails_alike(const CaseResult& result, const Case& other, const Backend& backend,
                 const JudgeOptions& options);

/// Looks for a smaller case with the same verdict by the same oracle or rule. Puts its problem into
/// result.shrunk and returns it; the case itself when nothing smaller fails alike or the verdict is
/// one that takes the whole time limit (hung).
Case shrink_failure(CaseResult& result, const Case& c, const Backend& backend,
                    const JudgeOptions& options, const ShrinkLimits& limits);

/// Writes the fixture that replays `c` into `folder`, made if need be, and names it in
/// result.fixture. Its name says all that tells it from another run's: backend, case, fault, rules.
/// A smaller case that an earlier run saved under that name is not replaced: it stays alone where
/// it fails `as_the_new_one`, else the new one gets a number. \throws std::system_error naming the
/// file
void save_failure(CaseResult& result, const Case& c, const Backend& backend, RulesMode rules,
                  const std::filesystem::path& folder,
                  const std::function<bool(const Case&)>& as_the_new_one);

/// Problem, recipe and fault in one line.
std::string in_words(const Case& c);

}  // namespace attest
