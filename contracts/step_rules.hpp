#pragma once

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/graph_pairs.hpp"
#include "contracts/problem.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// One of several calls that a framework made for one layer: other modes, other paths, other steps.
struct SiteCall {
  std::string name;  ///< how a person finds it: "sglang-0190, decode eager"
  const Call& call;
  const Problem& problem;
};

/// All of them, and what several rules look at.
class LayerCalls {
 public:
  /// \param calls  outlive this
  /// \param stop   ends the rules early when it becomes true
  explicit LayerCalls(std::span<const SiteCall> calls, const std::atomic<bool>* stop = nullptr)
      : calls_(calls), stop_(stop), graphs_(graph_pairs(calls, stop)) {}

  std::span<const SiteCall> all() const { return calls_; }
  std::span<const GraphPair> graphs() const { return graphs_; }
  /// Replays without a capture beside them: no rule holds them against one.
  std::vector<const SiteCall*> without_capture() const;
  bool stopped() const { return stop_ != nullptr && *stop_; }

 private:
  std::span<const SiteCall> calls_;
  const std::atomic<bool>* stop_;
  std::vector<GraphPair> graphs_;
};

/// A predicate over all calls of one layer: each may be right by itself, together they cannot be.
struct StepRule {
  std::string_view id;      ///< "step.fact_in_present_tense"
  std::string_view says;    ///< the sentence
  std::string_view why;     ///< what goes wrong otherwise
  std::string_view source;  ///< public thread or file
  Severity severity = Severity::wrong;
  void (*check)(const LayerCalls&, Report&) = nullptr;
};

std::span<const StepRule> step_rules();

/// Runs every step rule over the calls of one layer. \pre the problems are legal and their models
/// are one layer's.
Report check_step(const LayerCalls& calls);
Report check_step(std::span<const SiteCall> calls);

}  // namespace attest
