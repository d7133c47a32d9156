#pragma once

#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// Which token of the Problem each row of k_extend (or key) holds: new tokens stand in request
/// order, without gaps.
class NewTokens {
 public:
  explicit NewTokens(const Problem& problem);

  /// The row's content as a run of one. A row that is no token of the Problem is unknown, and lies
  /// outside.
  KeyRun content(std::int64_t row) const;

 private:
  const Problem& problem_;
  std::vector<std::int64_t> first_;  ///< (batch + 1) first row of each request
};

}  // namespace attest
