#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/mutants/detection.hpp"

namespace attest {

/// What a mutant is about, as somebody asks who reads a diagnosis.
enum class Subject {
  metadata,    ///< the call says it
  address,     ///< where keys, tables and outputs lie
  mask,        ///< which keys a row sees, and which of them are visited
  arithmetic,  ///< what is done with them
};
std::string_view name(Subject subject);

/// What the diagnosis of a mutant should say.
struct Diagnosable {
  std::string_view part;  ///< of the mutant's name; the first row whose part is in it decides
  Subject subject = Subject::arithmetic;
  /// Comma-separated names of names_in_diagnosis(), any of which says it; empty: none does.
  std::string_view names;
};
/// The table, expected_diagnoses.cpp. Faults of a call need no row: "metadata" says them.
std::span<const Diagnosable> expected_diagnoses();
const Diagnosable& diagnosable(const Mutant& mutant);

/// How well a trial's diagnosis did.
enum class Named {
  nothing,        ///< no wrong output to explain, or none was asked for
  first,          ///< the right name comes first
  second,         ///< it comes second
  wrongly,        ///< another mistake is named
  unexplained,    ///< a hypothesis would say it, and none is named
  no_hypothesis,  ///< none says it
};
std::string_view name(Named named);
Named named(const Mutant& mutant, const Trial& trial);

/// Diagnoses counted.
struct NamingScore {
  std::int64_t outputs = 0, first = 0, second = 0, wrongly = 0, unexplained = 0, no_hypothesis = 0;
  void add(Named named);
  /// Mutants whose mistake a hypothesis says.
  std::int64_t with_hypothesis() const { return outputs - no_hypothesis; }
};
/// Of attest's own oracles, by subject; all contexts together.
NamingScore naming_score(const Detection& run, Subject subject, Written written = Written::ever);

/// What the smallest failing cases of a run have in common.
struct ShrinkScore {
  std::int64_t cases = 0, requests = 0, trials = 0, largest_fixture = 0;  ///< medians; bytes
};
ShrinkScore shrink_score(const Detection& run);

/// "3 of 4 (75 %)".
std::string share(std::int64_t part, std::int64_t whole);

/// A line each for a terminal; empty where nothing was diagnosed, or made smaller.
std::string explained_text(const Detection& run);
/// The same as a chapter of docs/detection.md, with the mutants that were not named first.
std::string explained_markdown(const Detection& run);

}  // namespace attest
