#pragma once

#include <atomic>
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
  std::int64_t replays = 0;          ///< of graphs
  std::int64_t without_capture = 0;  ///< of these, held against no capture, for there is none
  std::string first_without;         ///< its name and size
};

/// All layers that have two calls or more, and what is in none of them.
struct CheckedLayers {
  std::vector<CheckedStep> steps;
  std::int64_t alone = 0;     ///< calls that are the only one of their layer
  std::int64_t left_out = 0;  ///< calls that were not read, or have no truth
  bool early = false;         ///< something ended it before every layer was compared
};

/// Holds captured calls and groups them: those of one framework version whose truth describes one
/// layer (heads, head sizes, scale, cap, window, MLA) form a group, whatever kernel, mode and path.
class CallsByLayer {
 public:
  /// A call that was not read, or has no truth, is counted and left out.
  void add(const CapturedCall& call);
  /// The groups of two calls or more, checked, in the order of their first call. Ends early, with
  /// what was found so far, when *stop becomes true.
  CheckedLayers check(const std::atomic<bool>* stop = nullptr) const;

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

/// A block per group with findings or with replays whose capture is missing, and a closing
/// sentence.
/// \param limit  blocks to print, the rest are counted; 0: all
std::string steps_text(const CheckedLayers& layers, std::int64_t limit = 0);
/// 0, 2 when a finding rejects, 3 when there was no group to check.
int steps_exit_code(const std::vector<CheckedStep>& steps);

}  // namespace attest
