#pragma once

#include <span>
#include <string>

#include "property_tests/report/console.hpp"
#include "property_tests/report/result.hpp"

namespace attest {

/// The results of one fixture: its name and story, then a line per side and backend with what each
/// rules mode said, by what, and how long both took, and what is wrong on the side with the fault:
/// the deciding rule's array and values, and the diagnosis. \pre results is not empty
std::string replay_text(std::span<const CaseResult> results, const Console& console);

/// What was not judged, a line for each reason with the number of fixtures; empty = nothing.
std::string not_judged_text(std::span<const CaseResult> results);

}  // namespace attest
