#pragma once

#include "property_tests/case.hpp"

namespace attest {

/// A recipe with which the case is not untrusted: its own, or `needle` where the case has too few
/// rows and heads for the own one to put something at every place that matters (`recall` gives each
/// row and head one key; `features` makes logits so peaked that most keys weigh nothing).
/// Cost: the recall plan, or for `features` with a softcap one evaluation of the reference.
Recipe recipe_with_power(const Case& c);

}  // namespace attest
