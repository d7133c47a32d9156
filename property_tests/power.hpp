#pragma once

#include "contracts/attended.hpp"
#include "contracts/numerics_profile.hpp"
#include "memory/tensor_source.hpp"
#include "property_tests/case.hpp"

namespace attest {

/// At least as loose as the profile of any backend: what fails its bounds fails theirs. Not made of
/// theirs, since a new backend must not change what is drawn.
NumericsProfile loosest_profile();

/// Changes recipe and seed until the case is not untrusted. Its own recipe can have too few rows
/// and heads to put something at every place that matters: `recall` gives each row and head one
/// key; `features` with a softcap makes logits so peaked that most keys weigh nothing; the few rows
/// of any recipe may all happen to ignore their newest key. Cost: one evaluation
/// of the reference for each try, where rows are few, logits peaked or large, or keys planted.
void give_power(Case& c);

}  // namespace attest
