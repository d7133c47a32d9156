#pragma once

#include "property_tests/case.hpp"

namespace attest {

/// A recipe with which the case is not untrusted: its own, or `needle` where the case has too few
/// rows and heads for the own one to put something at every place that matters (`recall` gives each
/// row and head one key; `features` with a softcap makes logits so peaked that most keys weigh
/// nothing; four rows of anything may all happen to ignore their newest key).
/// Cost: the recall plan; else one evaluation of the reference where rows are few or peaked.
Recipe recipe_with_power(const Case& c);

}  // namespace attest
