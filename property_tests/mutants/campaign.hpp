#pragma once

#include <functional>
#include <string>
#include <vector>

#include "property_tests/mutants/trial.hpp"

namespace attest {

/// Which mutants are tried where.
struct CampaignPlan {
  std::vector<const Mutant*> mutants;
  std::vector<std::int64_t> contexts = {512};
  std::vector<const Policy*> policies;  ///< empty: attest's own oracles
  TrialPlan trial;
  int jobs = 0;  ///< trials at a time; 0 = one per core
};

/// The mutants of a class ("all", "numeric", ...) whose name `part` is or is in; `handed`: only
/// those that stand for a public bug or a generic mutant. \throws std::invalid_argument when none
/// is left.
std::vector<const Mutant*> mutants_of(std::string_view kind, std::string_view part, bool handed,
                                      Written written = Written::ever);

/// How many trials the plan asks for.
std::size_t trial_count(const CampaignPlan& plan);

/// Tries each mutant in each context under each policy. `each` hears of every trial, from one
/// thread at a time; what it throws ends the campaign, and so does plan.trial.stop, after the cases
/// in hand. Long contexts first, so that no thread waits
/// for the last one. \returns all trials, in the order of the plan.
std::vector<Trial> run_campaign(const CampaignPlan& plan,
                                const std::function<void(const Trial&)>& each);

}  // namespace attest
