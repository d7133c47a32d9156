#include "property_tests/required_engines.hpp"

#include <algorithm>

#include "backends/registry.hpp"

namespace attest {

std::vector<std::string> engines_not_run(std::string_view required,
                                         std::span<const BackendTally> tallies) {
  std::vector<std::string> sentences;
  if (required.empty()) return sentences;
  for (const std::string_view named : split_at_commas(required)) {
    const std::string part(named);
    const bool ran = std::any_of(tallies.begin(), tallies.end(), [&](const BackendTally& tally) {
      const BackendName name = split_backend_name(tally.backend);
      return tally.cases() > 0 && name.implementation + "@" + name.engine == part;
    });
    if (!ran) sentences.push_back("ATTEST_REQUIRE names " + part + ", and no case ran on it");
  }
  return sentences;
}

}  // namespace attest
