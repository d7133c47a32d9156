#pragma once

#include <vector>

#include "property_tests/case.hpp"

namespace attest {

/// The committed list that the judge's speed is measured on: 8:2 heads, head dim 64, KV up to 512,
/// every mode, uneven lengths, window, softcap and sinks here and there. Changing it makes old
/// measurements incomparable; docs/performance.md says which revision it is.
std::vector<Case> small_cases();

}  // namespace attest
