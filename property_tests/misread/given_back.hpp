#pragma once

#include <vector>

#include "property_tests/diagnose.hpp"
#include "property_tests/misread/misreading.hpp"

namespace attest {

/// The hypotheses by which rows see keys that were given back, as misreadings of their names. No
/// slot holds such a key, so the reference has no number for it; but the call still says where a
/// kernel looks, and a misreading computes what lies there.
std::vector<Misreading> readings_of_given_back_keys(const Failure& failure,
                                                    const std::vector<Hypothesis>& hypotheses);

}  // namespace attest
