#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "property_tests/case.hpp"
#include "property_tests/run.hpp"

namespace attest {

/// Case i of a run on one backend.
struct StreamCase {
  Case c;
  std::string name;                   ///< "case 42", or the cell's
  std::vector<std::string> features;  ///< for the coverage line
  RunOptions run;                     ///< the plan's, and what the case forces
};

/// How many cases the plan's profile has for the backend; generated ones never end.
std::int64_t stream_length(const RunPlan& plan, const Backend& backend);
/// Why the backend judges no case of it; empty = it does.
std::string why_none(const RunPlan& plan, const Backend& backend);
/// Which cells of the dense lattice do not fit into plan.memory, in words; empty = all do.
std::string left_out(const RunPlan& plan, const Backend& backend);
/// \param device that it runs on, for the line that judges it again
StreamCase case_at(const RunPlan& plan, const Backend& backend, std::int64_t index, int device = 0);

/// The indices of the plan that this backend judges: its shard's, as far as the profile goes, and
/// as dense pools fit into plan.memory.
CaseRange cases_of(const RunPlan& plan, const Backend& backend);

}  // namespace attest
