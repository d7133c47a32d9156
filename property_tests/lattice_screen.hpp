#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/run.hpp"

namespace attest {

/// Counts the cells of the boundary lattice by where they were to go.
class LatticeScreen : public RunObserver {
 public:
  void begins(const Backend& backend, std::int64_t cells) override;
  void judged(const CaseResult& result, const BackendTally& so_far) override;

  /// A line per backend and boundary: cells that passed, of those that were judged, on each side.
  /// Then the cells that were not judged as they were meant to be, by name.
  std::string text() const;

 private:
  struct Count {
    std::int64_t passed = 0, judged = 0;
  };
  using Sides = std::array<Count, 3>;
  std::vector<std::string> backends_;
  std::map<std::string, std::map<std::string, Sides>> counts_;  ///< backend, "k, 2^31 bytes"
  std::vector<std::string> not_judged_;
};

}  // namespace attest
