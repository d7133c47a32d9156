#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <ostream>

#include "property_tests/generators.hpp"

namespace attest {

/// How RapidCheck prints a counterexample: what it is and how a person gets the case it came from.
inline void showValue(const Case& c, std::ostream& os) {
  os << describe(c.problem) << ", recipe " << name(c.recipe) << ", pool seed "
     << c.problem.pool.seed << " of " << c.problem.pool.num_pages << " pages, from " << c.origin;
}

/// Cases of the stream `seed` at random indices, shrunk by smaller(), the one shrinker.
inline rc::Gen<Case> any_case(GeneratorOptions options, std::uint64_t seed = 1) {
  return rc::Gen<Case>([options, seed](const rc::Random& random, int) {
    rc::Random source = random;
    return rc::shrinkable::shrinkRecur(
        generate(seed, source.next() >> 33, options),
        [](const Case& c) { return rc::seq::fromContainer(smaller(c)); });
  });
}

/// Runs a property a fixed number of times from a fixed seed, unless RC_PARAMS says otherwise: the
/// suite must not depend on the day. \returns whether it held.
template <class Property>
bool holds(const char* description, Property&& property) {
  setenv("RC_PARAMS", "seed=20260101 max_success=40", /*overwrite=*/0);
  return rc::check(description, std::forward<Property>(property));
}

}  // namespace attest
