#include "memory/recipe_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "memory/amplitude.hpp"
#include "memory/counter_hash.hpp"
#include "memory/planner.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 10> recipe_names = {
    "normal",    "recall",  "needle",   "features",  "shifted",
    "normal_20", "uniform", "positive", "small_int", "sparse_int"};

/// q and k each get one large element, so that every logit moves by +-100, +-200 or +-300: a
/// softmax does not mind, a maximum that begins at 0, an exp without one and a cap made of two
/// exponentials do.
RecipePlan plan_shifted(const Model& model, std::uint64_t seed) {
  const std::int64_t turn = below(chain(mix64(seed), std::int64_t{0}), 6);
  const double shift = 100 * static_cast<double>(turn % 3 + 1);
  const double unit = logit_per_element(model);
  RecipePlan plan;
  const float q = representable(model.q_dtype, std::sqrt(shift / unit));
  plan.q_shift = q * sign_of_scale(model);
  plan.k_shift = representable(model.kv_dtype, shift / (unit * static_cast<double>(q)));
  if (turn < 3) plan.k_shift = -plan.k_shift;
  return plan;
}

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
    case Recipe::shifted:
      return plan_shifted(problem.model, seed);
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
