#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

#include "property_tests/case.hpp"

namespace attest {

/// What every step of smaller() lowers, lexicographically and with both parts >= 0: shrinking ends.
/// The pool comes last, so that a shorter request is smaller although it leaves more pages free.
struct CaseSize {
  std::int64_t batch = 0;  ///< tokens, heads, dims, features
  std::int64_t pages = 0;  ///< of the pool
  auto operator<=>(const CaseSize&) const = default;
};
CaseSize size_of(const Case& c);

/// Collects the candidates of smaller(). Only cases that are legal and of smaller size are kept, so
/// a proposal may be careless about rules it does not know. Not for use elsewhere.
class Proposals {
 public:
  explicit Proposals(const Case& from);

  const Case& from() const { return from_; }
  /// A copy of the original, changed by `change(Problem&)`, if that is legal and smaller.
  template <class Change>
  void add(Change&& change) {
    Case candidate = from_;
    change(candidate.problem);
    keep(std::move(candidate));
  }
  /// The same for changes outside the Problem.
  void keep(Case candidate);

  std::vector<Case> take() { return std::move(kept_); }

 private:
  const Case& from_;
  CaseSize size_;
  bool legal_ = true;  ///< the original's lowering breaks no rejecting rule
  std::vector<Case> kept_;
};

// The proposals, in the order they are made: smaller_batch.cpp, then smaller_model.cpp.
void propose_fewer_requests(Proposals& proposals);
void propose_shorter_lengths(Proposals& proposals);
void propose_shorter_windows(Proposals& proposals);
void propose_fewer_new_tokens(Proposals& proposals);
void propose_fewer_heads(Proposals& proposals);
void propose_fewer_features(Proposals& proposals);
void propose_smaller_pool(Proposals& proposals);

}  // namespace attest
