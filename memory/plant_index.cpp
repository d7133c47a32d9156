#include "memory/plant_index.hpp"

#include <bit>

#include "memory/counter_hash.hpp"

namespace attest {
namespace {

std::uint64_t hash_of(const ContentKey& key, std::int64_t kv_head) {
  const auto sequence = static_cast<std::uint64_t>(key.sequence);
  const auto position = static_cast<std::uint64_t>(key.position);
  return mix64((sequence * weyl_step + position) * weyl_step + static_cast<std::uint64_t>(kv_head));
}

}  // namespace

PlantIndex::PlantIndex(std::span<const Plant> plants)
    : cells_(std::bit_ceil(2 * plants.size() + 1), -1) {
  for (std::size_t i = 0; i < plants.size(); ++i) put(plants[i], static_cast<std::int32_t>(i));
}

void PlantIndex::put(const Plant& plant, std::int32_t at) {
  const std::uint64_t mask = cells_.size() - 1;
  std::uint64_t cell = hash_of(plant.key, plant.kv_head) & mask;
  while (cells_[cell] >= 0) cell = (cell + 1) & mask;
  cells_[cell] = at;
}

std::int64_t PlantIndex::find(std::span<const Plant> plants, const ContentKey& key,
                              std::int64_t kv_head) const {
  if (plants.empty()) return -1;
  const std::uint64_t mask = cells_.size() - 1;
  for (std::uint64_t cell = hash_of(key, kv_head) & mask; cells_[cell] >= 0;
       cell = (cell + 1) & mask) {
    const auto at = static_cast<std::size_t>(cells_[cell]);
    if (plants[at].key == key && plants[at].kv_head == kv_head) return cells_[cell];
  }
  return -1;
}

void PlantIndex::add_last(std::span<const Plant> plants) {
  if (2 * plants.size() > cells_.size()) {
    *this = PlantIndex(plants);
  } else {
    put(plants.back(), static_cast<std::int32_t>(plants.size() - 1));
  }
}

}  // namespace attest
