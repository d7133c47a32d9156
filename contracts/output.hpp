#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attest {

/// What a kernel left in its output buffer, decoded to float (exact for every output dtype, NaN
/// payloads of 16- and 32-bit types kept).
struct Output {
  std::int64_t rows = 0;      ///< of the out tensor, padded rows included
  std::int64_t heads = 0;     ///< num_q_heads
  std::int64_t dim = 0;       ///< v_head_dim
  std::vector<float> values;  ///< (rows, heads, dim)
  std::vector<std::uint8_t>
      untouched;           ///< (rows, heads): 1 = every element still holds the sentinel
  std::vector<float> lse;  ///< (rows, heads) natural log; empty = not returned

  std::size_t index(std::int64_t row, std::int64_t head, std::int64_t d = 0) const {
    return static_cast<std::size_t>((row * heads + head) * dim + d);
  }
  bool operator==(const Output&) const = default;
};

}  // namespace attest
