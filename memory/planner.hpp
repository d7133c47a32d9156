#pragma once

#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "memory/plant_index.hpp"
#include "memory/recipe_plan.hpp"

namespace attest {

/// One row of q of a live request, as the planners walk them.
struct PlannedRow {
  std::int64_t row = 0;
  std::size_t request = 0;
  std::int64_t token = 0;  ///< of the request's new tokens
  /// What the row may see lies at the indices [0, keys) of its request's key list: text tokens, or
  /// encoder tokens in cross attention. Its own token is at `own`; the last encoder token there.
  std::int64_t keys = 0;
  std::int64_t own = 0;
  std::int64_t first = 0;  ///< first index inside the window
  std::uint64_t hash = 0;  ///< of (seed, token): the same in every batch the token is part of
};

/// What the recipes share while they choose places: who sees what, and which places are taken.
class Planner {
 public:
  Planner(const Problem& problem, const SlotMap& slots, std::uint64_t seed);

  const Problem& problem() const { return problem_; }
  const Model& model() const { return problem_.model; }
  std::uint64_t seed() const { return seed_; }
  const std::vector<PlannedRow>& rows() const { return rows_; }
  std::int64_t group() const { return model().num_q_heads / model().num_kv_heads; }

  /// Content of index `index` of a request's key list.
  ContentKey key_at(std::size_t request, std::int64_t index) const;
  bool sees(std::int64_t row, const ContentKey& key) const;
  std::int64_t visible(std::int64_t row) const;
  /// The n-th key the row sees, 0 <= n < visible(row).
  ContentKey nth_visible(std::int64_t row, std::int64_t n) const;
  /// Whether index `index` of the request lies in the pool (not evicted).
  bool in_pool(std::size_t request, std::int64_t index) const;

  bool taken(const ContentKey& key, std::int64_t kv_head) const;
  /// \returns false when the place is taken.
  bool plant(const Plant& plant);

  /// Mean over the live rows of ln(visible keys); 0 without any.
  double mean_log_visible() const;

  /// The plants in their final order; the planner is spent.
  std::vector<Plant> take_plants();

 private:
  const Problem& problem_;
  const SlotMap& slots_;
  std::uint64_t seed_;
  Attended meaning_;
  std::vector<PlannedRow> rows_;
  std::vector<Plant> plants_;
  PlantIndex index_;
};

/// The recipes. Each is one file.
RecipePlan plan_recall(const Problem& problem, const SlotMap& slots, std::uint64_t seed);
RecipePlan plan_needle(const Problem& problem, const SlotMap& slots, std::uint64_t seed);
RecipePlan plan_features(const Problem& problem, const SlotMap& slots, std::uint64_t seed);

}  // namespace attest
