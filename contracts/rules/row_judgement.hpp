#pragma once

#include <string>

#include "contracts/problem.hpp"

namespace attest {

/// Whether batch row i is judged in full: at capture every row is a dummy and the formulas of the
/// real ones are recorded with it; elsewhere nobody reads what a padded row computes.
inline bool counts(const Request& request, const Problem& problem) {
  return request.live || problem.path == Path::capture;
}

/// Whether its KV length has a right value. A dummy row of a draft step has none.
inline bool length_counts(const Request& request, const Problem& problem) {
  return request.live || (problem.path == Path::capture && problem.mode != Mode::draft_decode);
}

/// "134 = 131 committed + 3 new"
std::string length_text(const Request& request);

/// Shortest text that reads back as the same number.
std::string number_text(double value);

}  // namespace attest
