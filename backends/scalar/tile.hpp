#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/scalar/operands.hpp"

namespace attest {

inline constexpr std::int64_t tile_keys = 64;
/// Width of the inner loops: that many sums stay in registers.
inline constexpr std::int64_t block = 64;
using Block = std::array<float, block>;

/// Smallest multiple of `block` that holds `n`.
constexpr std::int64_t padded(std::int64_t n) { return (n + block - 1) / block * block; }

/// sum_i weights[i] * rows[i][0 .. block), in the order of i. Both products of attention have this
/// shape: scores are q's elements weighting the rows of K transposed, outputs are probabilities
/// weighting the rows of V. Rows are `stride` floats apart.
inline void weighted_sum(const float* weights, std::int64_t count, const float* rows,
                         std::int64_t stride, Block& sum) {
  Block acc{};
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const row = rows + i * stride;
    for (std::int64_t j = 0; j < block; ++j) {
      acc[static_cast<std::size_t>(j)] += weights[i] * row[j];
    }
  }
  sum = acc;
}

/// Up to tile_keys keys of one kv head in float32: K transposed, V as it lies. Elements past the
/// last key or dimension are zero.
struct Tile {
  std::int64_t first = 0, count = 0;     ///< keys [first, first + count) of the group
  std::vector<float> k;                  ///< (head_dim, tile_keys)
  std::vector<float> v;                  ///< (tile_keys, padded(v_head_dim))
  std::array<bool, tile_keys> absent{};  ///< KeyRow::absent

  void load(const Operands& op, const RowGroup& group, std::int64_t kv_head, std::int64_t first_key,
            std::int64_t key_count);

 private:
  std::vector<float> row_;
};

}  // namespace attest
