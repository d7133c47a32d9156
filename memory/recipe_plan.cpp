#include "memory/recipe_plan.hpp"

#include <algorithm>
#include <array>

#include "memory/planner.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 9> recipe_names = {"normal",   "recall",    "needle",
                                                          "features", "normal_20", "uniform",
                                                          "positive", "small_int", "sparse_int"};

}  // namespace

std::string_view name(Recipe recipe) { return recipe_names[static_cast<std::size_t>(recipe)]; }

std::optional<Recipe> recipe_from_name(std::string_view text) {
  const auto* const at = std::find(recipe_names.begin(), recipe_names.end(), text);
  if (at == recipe_names.end()) return std::nullopt;
  return static_cast<Recipe>(at - recipe_names.begin());
}

RecipePlan plan_recipe(const Problem& problem, const SlotMap& slots, Recipe recipe,
                       std::uint64_t seed) {
  switch (recipe) {
    case Recipe::recall:
      return plan_recall(problem, slots, seed);
    case Recipe::needle:
      return plan_needle(problem, slots, seed);
    case Recipe::features:
      return plan_features(problem, slots, seed);
    case Recipe::normal_20:
      return {.q_values = Distribution::normal_20};
    case Recipe::uniform:
      return {.q_values = Distribution::uniform, .kv_values = Distribution::uniform};
    case Recipe::positive:
      return {.q_values = Distribution::positive, .kv_values = Distribution::positive};
    case Recipe::small_int:
      return {.q_values = Distribution::small_int, .kv_values = Distribution::small_int};
    case Recipe::sparse_int:
      return {.q_values = Distribution::sparse_int, .kv_values = Distribution::sparse_int};
    default:
      return {};
  }
}

}  // namespace attest
