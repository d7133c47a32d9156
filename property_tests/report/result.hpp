#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contracts/verdict.hpp"
#include "property_tests/judge.hpp"

namespace attest {

/// Whether a fixture, or a side of it, says anything of the backend that a replay was asked for in
/// place of the fixture's own.
enum class Applies { yes, other_signature, unsupported, fault_of_another_kernel };

/// One judged case as every report says it: of a run (a case of the stream) or of a replay (one
/// side of a fixture in one rules mode).
struct CaseResult {
  std::string name;        ///< "case 42", "int32_past_2gib, with fault, rules enforced"
  std::int64_t index = 0;  ///< of the stream, or of the replay, from 0
  std::uint64_t seed = 0;  ///< of the stream, or of the fixture's tensors
  std::string problem;     ///< describe(problem), recipe and fault in words
  std::vector<std::string> features;
  Judgement judgement;
  /// Only in a replay, or where a run was told what to expect.
  std::optional<Verdict> expected;
  std::string side;                ///< of a replay: "with the fault", "without the fault" or empty
  std::string rules;               ///< of a replay: "enforced", "reported" or "off"
  std::string story;               ///< of a replay: the fixture's
  Applies applies = Applies::yes;  ///< of a replay: else it says nothing, and nothing is unexpected
  std::string unexpected;          ///< why it is not what was expected; empty = it is
  std::string fixture;             ///< file that replays it; empty = none
  std::string known;        ///< entry of the list of known failures that says so; empty = none
  std::string known_issue;  ///< its link
  std::string shrunk;       ///< "36 trials, 7 steps: decode 1 req 1:1 ..."; empty = not shrunk
  bool found = false;       ///< not of the stream: a failure that an earlier run saved
};

/// A verdict that says the case went wrong, as opposed to one that says it was not judged.
bool is_failure(Verdict verdict);

/// Whether a found failure says nothing now: it was not judged, or could not have failed.
bool says_nothing(const CaseResult& result);

/// "<entry>, <link>" of a known failure.
std::string known_in_words(const CaseResult& result);

/// Name of the first oracle that failed, else the first rejecting rule, else the verdict: two
/// failures of equal kind are probably one bug.
std::string failure_kind(const Judgement& judgement);

}  // namespace attest
