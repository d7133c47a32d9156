#pragma once

#include <span>
#include <string>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// One of several calls that a framework made for one layer: other modes, other paths, other steps.
struct SiteCall {
  std::string name;  ///< how a person finds it: "sglang-0190, decode eager"
  const Call& call;
  const Problem& problem;
};

/// A predicate over all calls of one layer: each may be right by itself, together they cannot be.
struct StepRule {
  std::string_view id;      ///< "step.fact_in_present_tense"
  std::string_view says;    ///< the sentence
  std::string_view why;     ///< what goes wrong otherwise
  std::string_view source;  ///< public thread or file
  Severity severity = Severity::wrong;
  void (*check)(std::span<const SiteCall>, Report&) = nullptr;
};

std::span<const StepRule> step_rules();

/// Runs every step rule over the calls of one layer. \pre the problems are legal and their models
/// are one layer's.
Report check_step(std::span<const SiteCall> calls);

}  // namespace attest
