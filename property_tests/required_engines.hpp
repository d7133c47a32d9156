#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/report/tally.hpp"

namespace attest {

/// One sentence per engine of ATTEST_REQUIRE ("hip@rocm,amx@native") on which this run judged no
/// case: being available is not enough, it must have run.
std::vector<std::string> engines_not_run(std::string_view required,
                                         std::span<const BackendTally> tallies);

}  // namespace attest
