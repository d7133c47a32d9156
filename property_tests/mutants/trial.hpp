#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "property_tests/mutants/mutant.hpp"
#include "property_tests/mutants/policy.hpp"

namespace attest {

/// What became of a mutant.
enum class Outcome {
  killed,      ///< an oracle, a rule or a relation said no, and to the kernel without it yes
  survived,    ///< nothing did, in as many cases as were allowed
  equivalent,  ///< it computes what it should, with the reason
  elsewhere,   ///< a test of its own shows it; not run here
  not_run,     ///< this machine cannot run its kernel
};
std::string_view name(Outcome outcome);

/// One mutant in one context under one way of judging.
struct Trial {
  std::string mutant;
  std::int64_t keys = 0;
  std::string policy = "attest";
  Outcome outcome = Outcome::survived;
  std::string killed_by;             ///< oracle, "rule <id>", "relation <id>", "crash", "hang", ...
  std::vector<std::string> oracles;  ///< all that refused the first killing output
  std::string numbers_by;  ///< of mutants of the metadata: the oracle that refused the output
  std::int64_t cases = 0;  ///< judged, to the first kill
  std::int64_t numbers_cases = 0;
  double seconds = 0;  ///< to the first kill
  std::string says;    ///< the kill, or why there is none, in a sentence
  std::string diagnosis;
  std::int64_t honest_cases = 0;     ///< the same cases on the kernel without the fault
  std::int64_t false_failures = 0;   ///< of them
  std::string false_failure;         ///< the first
  std::int64_t shrunk_requests = 0;  ///< of the smallest case that still fails; 0: not shrunk
  std::int64_t shrunk_trials = 0;
  std::int64_t shrunk_bytes = 0;  ///< of its fixture
  std::string shrunk;
};

struct TrialPlan {
  std::uint64_t seed = 1;
  std::int64_t keys = 512;
  std::int64_t most_cases = 400;   ///< judged before a mutant counts as survivor
  std::int64_t most_seconds = 60;  ///< likewise
  bool diagnose = false;
  int shrink_trials = 0;                    ///< 0: the killing case is not made smaller
  const std::atomic<bool>* stop = nullptr;  ///< ends a trial between two launches
};

/// Tries one mutant. Never throws for what a kernel does.
Trial try_mutant(const Mutant& mutant, const TrialPlan& plan);

/// The same mutant judged as a suite would: its data, its comparison, no rule, no poison, no guard.
/// A case that the kernel without the fault fails under the policy kills nothing.
Trial try_mutant(const Mutant& mutant, const TrialPlan& plan, const Policy& policy);

}  // namespace attest
