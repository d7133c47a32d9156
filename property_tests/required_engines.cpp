#include "property_tests/required_engines.hpp"

#include <algorithm>

#include "backends/backend.hpp"

namespace attest {

std::vector<std::string> engines_not_run(std::string_view required,
                                         std::span<const BackendTally> tallies) {
  std::vector<std::string> sentences;
  while (!required.empty()) {
    const std::size_t comma = std::min(required.find(','), required.size());
    const std::string part(required.substr(0, comma));
    required.remove_prefix(std::min(comma + 1, required.size()));
    if (part.empty()) continue;
    const bool ran = std::any_of(tallies.begin(), tallies.end(), [&](const BackendTally& tally) {
      const BackendName name = split_backend_name(tally.backend);
      return tally.cases() > 0 && name.implementation + "@" + name.engine == part;
    });
    if (!ran) sentences.push_back("ATTEST_REQUIRE names " + part + ", and no case ran on it");
  }
  return sentences;
}

}  // namespace attest
