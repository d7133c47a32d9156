#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/numerics_profile.hpp"
#include "contracts/output.hpp"
#include "memory/tensor_source.hpp"
#include "reference/attention.hpp"

namespace attest {

/// One oracle's word on one output.
struct OracleResult {
  std::string oracle;  ///< "rows", "hard", "z", "gain", "lse"
  bool passed = false;
  double worst = 0;                                ///< largest measure / limit
  std::int64_t row = -1, head = -1, element = -1;  ///< where; -1 = not located
  std::int64_t failures = 0;                       ///< places over the limit
  std::int64_t compared = 0;                       ///< places looked at; 0 never passes
  std::string detail;  ///< "row 5 head 2 element 17: got -0.41, expected 0.873, bound 0.0031"
};

/// Every oracle that applies to the recipe and profile, each with its result: all must pass.
/// Applies: rows (expectations zero/untouched/value are met, no NaN), hard (every recipe), z and
/// gain (recipes the profile has a limit for), lse (when returned).
/// \pre expected was computed with envelopes.
std::vector<OracleResult> compare(const Attended& meaning, const Expected& expected,
                                  const Output& got, const NumericsProfile& profile,
                                  const TensorSource& source);

bool all_passed(const std::vector<OracleResult>& results);

}  // namespace attest
