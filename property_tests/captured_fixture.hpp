#pragma once

#include <string>
#include <variant>
#include <vector>

#include "fixtures/captured.hpp"
#include "fixtures/fixture.hpp"

namespace attest {

/// What to keep while a captured call is made small.
struct CapturedFixtureOptions {
  std::string rule;      ///< empty: the first finding that rejects, else the first finding
  int max_trials = 400;  ///< smaller cases that are tried; 0 keeps the call as it was recorded
  std::vector<std::string> worker = {};  ///< as in JudgeOptions: every launch is in a worker
};

/// A captured call as a fixture, and how it came about.
struct CapturedFixture {
  Fixture fixture;
  std::string kept;  ///< the rule, or the failure kind ("hard", "crashed")
  int trials = 0, steps = 0;
  std::string no_symptom;  ///< why only the rule shows it; empty = the numbers are wrong too
  std::string not_shrunk;  ///< why it is as large as the call; empty = it is not
};

/// The smallest case found in which the call's rule still fires (and no rule that did not fire
/// before does), and its numbers are still wrong where the call's were; or, of a call that breaks
/// no rule, in which its numbers are still wrong alike, or its kernel still dies: what is wrong
/// with the call is carried over to smaller steps, whose arguments are otherwise the lowering's.
/// The first backend on which it shows is the fixture's: the scalar kernel, or a planted fault for
/// a rule that only stricter kernels have. Replaying the fixture gives what it expects: both sides
/// were judged.
/// \returns why not, where the call cannot be judged or nothing is wrong with it
std::variant<CapturedFixture, std::string> fixture_of_captured(
    const CapturedCall& captured, const CapturedFixtureOptions& options);

}  // namespace attest
