#pragma once

#include <span>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// A framework's mistake between two steps over one pool: the step before left something that the
/// correct call of this step must not hold. Faults of one call alone: metadata_faults.hpp.
struct StepFault {
  std::string_view id;      ///< "lengths_of_the_captured_step"
  std::string_view says;    ///< one sentence
  std::string_view source;  ///< public thread
  /// Changes the call of step `now`; false when it leaves the call as it was.
  bool (*apply)(const Problem& before, const Problem& now, Call&);
};

std::span<const StepFault> all_step_faults();
const StepFault* find_step_fault(std::string_view id);

}  // namespace attest
