#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backends/scalar/operands.hpp"
#include "backends/scalar/tile.hpp"

namespace attest {

/// Running softmax of one (row, q head) over one split of the keys: the maximum score, the sum of
/// e^(score - max), and the unnormalised output.
struct Partial {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  std::vector<float> acc;  ///< padded(v_head_dim)
};

/// Takes the tile's visible keys into `partial`. `q`: head_dim floats.
void absorb(const Operands& op, const Tile& tile, const QueryRow& row, const float* q,
            Partial& partial);

/// Merges the splits by log-sum-exp, divides, adds the sink to the denominator, applies v's
/// descale. A row without a visible key gives zeros and lse = -inf (the sink, where there is one).
/// \returns lse. `out`: padded(v_head_dim) floats.
float merge(const Operands& op, std::int64_t q_head, std::span<const Partial> splits, float* out);

}  // namespace attest
