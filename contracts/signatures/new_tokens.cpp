#include "contracts/signatures/new_tokens.hpp"

#include <algorithm>

#include "contracts/signatures/slot_contents.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

NewTokens::NewTokens(const Problem& problem) : problem_(problem), first_{0} {
  for (const Request& r : problem.requests) first_.push_back(first_.back() + r.new_tokens);
}

KeyRun NewTokens::content(std::int64_t row) const {
  if (row < 0 || row >= first_.back()) return {unknown_sequence, outside_slot, 1};
  const auto after = std::upper_bound(first_.begin(), first_.end(), row);
  const auto i = static_cast<std::size_t>(after - first_.begin() - 1);
  const Request& r = problem_.requests[i];
  const ContentKey key = content_of(r, r.committed + row - first_[i]);
  return {key.sequence, key.position, 1};
}

}  // namespace attest
