#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"
#include "memory/value_table.hpp"

namespace attest {

/// Distributions of q, k, v and sinks. docs/data.md says what each one shows.
enum class Recipe {
  normal,
  recall,
  needle,
  features,
  shifted,  ///< normal, all logits moved by one large number
  // What well-known test suites fill their tensors with; nothing is planted.
  normal_20,   ///< q is N(0, 1) * 20
  uniform,     ///< all on (-1, 1)
  positive,    ///< all on (0, 1)
  small_int,   ///< all integers of -4 .. 4
  sparse_int,  ///< the same, three of four are 0
};
std::string_view name(Recipe recipe);
std::optional<Recipe> recipe_from_name(std::string_view text);

/// A position where a recipe plants a distinctive key.
struct Plant {
  ContentKey key;
  std::int64_t kv_head = 0;
  std::int64_t row = 0;  ///< q row it answers to; -1 = every row of the kv head (needle)
  std::int64_t q_head = 0;
  bool decoy = false;  ///< a key the row must not see
};

/// What a recipe decides once per case, before any element is written. Elements then depend on the
/// seed, their coordinates and these numbers alone.
struct RecipePlan {
  std::vector<Plant> plants;  ///< sorted by (key, kv_head), at most one each
  /// K of a plant is +-key_amplitude, of a decoy +-decoy_amplitude; V of both is +-code_amplitude.
  float key_amplitude = 2;
  float decoy_amplitude = 2.5F;
  float code_amplitude = 2;
  /// Amplitude of the sign part of each q row (recall, needle); negative when the scale is.
  std::vector<float> row_amplitude;
  /// Elements of q and k from here on carry the sign pattern, those before are ordinary (needle).
  std::int64_t aligned_from = 0;
  int q_exponent = 0;  ///< ordinary q elements are N(0, 1) * 2^q_exponent
  /// The last element of every row of q and k, where they are not 0 (shifted).
  float q_shift = 0, k_shift = 0;
  double sink_centre = 0;  ///< sinks are this + N(0, 1)
  Distribution q_values = Distribution::normal;
  Distribution kv_values = Distribution::normal;
};

/// \pre !problem_error(problem). Cost: O(rows * q heads) for recall, less for the others.
RecipePlan plan_recipe(const Problem& problem, const SlotMap& slots, Recipe recipe,
                       std::uint64_t seed);

}  // namespace attest
