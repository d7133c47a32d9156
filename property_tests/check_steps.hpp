#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/rule.hpp"
#include "fixtures/captured.hpp"

namespace attest {

/// What the step rules say of the calls of one layer.
struct CheckedStep {
  std::string layer;  ///< "51346182, layer of 8:2 heads of 128, scale 0.08125, cap 50"
  std::int64_t calls = 0;
  std::vector<Finding> findings;
};

/// Holds captured calls and groups them: those of one framework version whose truth describes one
/// layer (heads, head sizes, scale, cap, window, MLA) form a group, whatever kernel, mode and path.
class CallsByLayer {
 public:
  /// A call that was not read, or has no truth, is counted and left out.
  void add(const CapturedCall& call);
  /// The groups of two calls or more, checked, in the order of their first call.
  std::vector<CheckedStep> check() const;
  std::int64_t left_out() const { return left_out_; }

 private:
  /// A call in one piece: what check() needs of a CapturedCall that has both parts.
  struct Kept {
    std::string layer, name;
    Call call;
    Problem problem;
  };
  std::vector<Kept> calls_;
  std::int64_t left_out_ = 0;
};

/// A block per group with findings and a closing sentence.
std::string steps_text(const std::vector<CheckedStep>& steps, std::int64_t left_out);
/// 0, 2 when a finding rejects, 3 when there was no group to check.
int steps_exit_code(const std::vector<CheckedStep>& steps);

}  // namespace attest
