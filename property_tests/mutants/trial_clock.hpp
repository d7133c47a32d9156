#pragma once

#include <chrono>

#include "property_tests/mutants/trial.hpp"

namespace attest {

inline bool is_stopped(const TrialPlan& plan) { return plan.stop != nullptr && plan.stop->load(); }

/// When a trial has had its share.
class TrialClock {
 public:
  explicit TrialClock(const TrialPlan& plan) : plan_(plan) {}

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  /// What a trial would say is of no use then: ask between any two launches.
  bool stopped() const { return is_stopped(plan_); }
  bool enough(std::int64_t cases) const {
    return stopped() || cases >= plan_.most_cases ||
           seconds() >= static_cast<double>(plan_.most_seconds);
  }
  /// Indices looked at for cases; most mutants find one in each, rare features in every hundredth.
  std::uint64_t last_index() const { return static_cast<std::uint64_t>(plan_.most_cases) * 60; }

 private:
  const TrialPlan& plan_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// An outcome that needs no case: equivalent, elsewhere, not run; false where cases decide.
bool decided_without_cases(const Mutant& mutant, Trial& trial);

// By kind; each fills `trial`, in the files of those names.
void try_relations(const Mutant& mutant, const TrialPlan& plan, Trial& trial);
void try_rule(const Mutant& mutant, Trial& trial);

}  // namespace attest
