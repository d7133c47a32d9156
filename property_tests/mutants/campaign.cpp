#include "property_tests/mutants/campaign.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "contracts/resource_error.hpp"

namespace attest {
namespace {

struct Task {
  const Mutant* mutant = nullptr;
  std::int64_t keys = 0;
  const Policy* policy = nullptr;
};

std::vector<Task> tasks_of(const CampaignPlan& plan) {
  std::vector<const Policy*> policies = plan.policies;
  if (policies.empty()) policies.push_back(nullptr);
  std::vector<Task> tasks;
  for (const Policy* policy : policies) {
    for (const std::int64_t keys : plan.contexts) {
      for (const Mutant* mutant : plan.mutants) tasks.push_back({mutant, keys, policy});
    }
  }
  return tasks;
}

class Campaign {
 public:
  Campaign(const CampaignPlan& plan, const std::function<void(const Trial&)>& each)
      : plan_(plan), each_(each), tasks_(tasks_of(plan)), trials_(tasks_.size()) {
    order_.resize(tasks_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return tasks_[a].keys != tasks_[b].keys ? tasks_[a].keys > tasks_[b].keys : a < b;
    });
  }

  std::vector<Trial> run() {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    const std::size_t jobs = plan_.jobs > 0 ? static_cast<std::size_t>(plan_.jobs) : cores;
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < std::min(jobs, tasks_.size()); ++i) {
        others.push_back(start_thread(i + 1, jobs, "the campaign (--jobs)", [this] { work(); }));
      }
      work();
    }
    if (error_) std::rethrow_exception(error_);
    std::erase_if(trials_, [](const Trial& trial) { return trial.mutant.empty(); });
    return std::move(trials_);
  }

 private:
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return error_ != nullptr || (plan_.trial.stop != nullptr && plan_.trial.stop->load());
  }

  void work() {
    try {
      for (std::size_t at = next_++; at < order_.size() && !stopped(); at = next_++) {
        const Task& task = tasks_[order_[at]];
        TrialPlan trial_plan = plan_.trial;
        trial_plan.keys = task.keys;
        Trial trial = task.policy != nullptr ? try_mutant(*task.mutant, trial_plan, *task.policy)
                                             : try_mutant(*task.mutant, trial_plan);
        const std::lock_guard lock(mutex_);
        // One that was interrupted says nothing about its mutant.
        if (plan_.trial.stop != nullptr && plan_.trial.stop->load()) return;
        if (each_) each_(trial);
        trials_[order_[at]] = std::move(trial);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  const CampaignPlan& plan_;
  const std::function<void(const Trial&)>& each_;
  const std::vector<Task> tasks_;
  std::vector<std::size_t> order_;
  std::vector<Trial> trials_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::exception_ptr error_;
};

bool stands_for_something(const Mutant& mutant) {
  for (const HandedBug& bug : all_handed_bugs()) {
    for (const std::string_view stand : stands_of(bug)) {
      if (means(stand, mutant)) return true;
    }
  }
  const auto generic = generic_mutants();
  return std::any_of(generic.begin(), generic.end(),
                     [&](const GenericMutant& one) { return means(one.stands, mutant); });
}

}  // namespace

std::vector<const Mutant*> mutants_of(std::string_view kind, std::string_view part, bool handed,
                                      Written written) {
  std::vector<const Mutant*> chosen;
  for (const Mutant& mutant : all_mutants()) {
    if (kind != "all" && name(mutant.shows) != kind) continue;
    if (mutant.name.find(part) == std::string::npos) continue;
    if (handed && !stands_for_something(mutant)) continue;
    if (!was_written(mutant, written)) continue;
    chosen.push_back(&mutant);
  }
  if (chosen.empty()) {
    throw std::invalid_argument("no mutant of class " + std::string(kind) + " has \"" +
                                std::string(part) + "\" in its name");
  }
  return chosen;
}

std::size_t trial_count(const CampaignPlan& plan) {
  return plan.mutants.size() * plan.contexts.size() *
         std::max<std::size_t>(1, plan.policies.size());
}

std::vector<Trial> run_campaign(const CampaignPlan& plan,
                                const std::function<void(const Trial&)>& each) {
  return Campaign(plan, each).run();
}

}  // namespace attest
