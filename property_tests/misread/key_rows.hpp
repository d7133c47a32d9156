#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "memory/stray_read.hpp"
#include "property_tests/misread/kernel_view.hpp"

namespace attest {

/// Rows of K and V as they lie in memory: what a kernel gets that reads from any element on, poison
/// and the halves of two rows included. Each is made once and has a number.
class KeyRows {
 public:
  /// \param view must outlive this.
  explicit KeyRows(const KernelView& view);

  static constexpr std::size_t zeros = 0;
  /// The row of a pool that begins at `element`.
  std::size_t pooled(PoolHalf half, std::int64_t element);
  /// The row of the new tokens' tensor.
  std::size_t fresh(PoolHalf half, std::int64_t row, std::int64_t head);
  /// What lies in the slot of a new token before a kernel stores it.
  std::size_t unstored(PoolHalf half);

  /// As many elements as a row of its half has.
  std::span<const float> values(std::size_t number, PoolHalf half) const;
  bool has_nan(std::size_t number) const { return nan_[number] != 0; }

 private:
  struct Cell {
    std::int64_t slot = 0, head = 0, element = 0;
  };
  const PoolLayout& layout(PoolHalf half) const { return half == PoolHalf::k ? view_.k : view_.v; }
  std::size_t dim(PoolHalf half) const;
  std::optional<Cell> cell(const PoolLayout& pool, std::int64_t element) const;
  float poison(PoolHalf half, Region region) const;
  Region region_of(const PoolLayout& pool, std::int64_t element,
                   const std::optional<Cell>& cell) const;
  std::vector<float> row_of(PoolHalf half, const ContentKey& key, std::int64_t head) const;
  std::vector<float> gather(PoolHalf half, std::int64_t element) const;
  std::size_t keep(std::vector<float> row);

  const KernelView& view_;
  std::unordered_map<std::int64_t, ContentKey> contents_;
  std::unordered_set<std::int64_t> used_units_;
  std::vector<std::vector<float>> rows_;
  std::vector<std::uint8_t> nan_;
  std::unordered_map<std::int64_t, std::size_t> pooled_[2], fresh_[2];
};

}  // namespace attest
