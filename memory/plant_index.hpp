#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/recipe_plan.hpp"

namespace attest {

/// (content key, kv head) -> position in a list of plants. Open addressing: a miss, the common
/// answer while a pool is filled, costs one probe or two.
class PlantIndex {
 public:
  PlantIndex() = default;
  /// \pre plants.size() < 2^31.
  explicit PlantIndex(std::span<const Plant> plants);

  /// Position in `plants`, which must be the list indexed so far; -1 = none there.
  std::int64_t find(std::span<const Plant> plants, const ContentKey& key,
                    std::int64_t kv_head) const;
  /// Indexes plants.back(). \pre find() of it was -1.
  void add_last(std::span<const Plant> plants);

 private:
  void put(const Plant& plant, std::int32_t at);

  std::vector<std::int32_t> cells_;  ///< position or -1; a power of two of them, at most half used
};

}  // namespace attest
