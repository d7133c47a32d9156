#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "property_tests/case.hpp"

namespace attest {

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
  std::int64_t size_;
  bool legal_ = true;  ///< the original's lowering breaks no rejecting rule
  std::vector<Case> kept_;
};

/// A whole number >= 0 that every step of smaller() lowers: shrinking ends.
std::int64_t size_of(const Case& c);

// The proposals, in the order they are made: smaller_batch.cpp, then smaller_model.cpp.
void propose_fewer_requests(Proposals& proposals);
void propose_shorter_lengths(Proposals& proposals);
void propose_fewer_new_tokens(Proposals& proposals);
void propose_fewer_heads(Proposals& proposals);
void propose_fewer_features(Proposals& proposals);
void propose_smaller_pool(Proposals& proposals);

}  // namespace attest
