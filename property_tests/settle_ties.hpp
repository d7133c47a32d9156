#pragma once

#include <vector>

#include "property_tests/hypothesis_fit.hpp"

namespace attest {

/// Leaves of several mistakes that fit those that the fewest further outputs speak against. Right
/// outputs do not count: a kernel may make its mistake for some shapes only. A wrong one that
/// speaks against all of them says nothing.
void settle_ties(Ranking& ranking, const std::vector<Hypothesis>& hypotheses,
                 const FurtherOutputs& further);

}  // namespace attest
