#pragma once

#include <cstdint>
#include <string>

namespace attest::hip {

/// What the choice of a form is made from: host-side numbers only, so that a captured graph and an
/// eager call with the same arguments run the same launches.
struct RouteInput {
  std::int64_t batch = 1;
  std::int64_t total_rows = 1;    ///< rows of q
  std::int64_t max_seqlen_q = 1;  ///< longest request
  std::int64_t max_seqlen_k = 1;  ///< longest length
  std::int64_t group = 1;         ///< q heads that share one load of K/V
  std::int64_t num_kv_heads = 1;
  std::int64_t window_left = -1;  ///< -1 = off
  std::int64_t multiprocessors = 132;
  std::int64_t blocks_per_multiprocessor = 2;  ///< that fit at a time
};

/// How a call is launched.
struct Route {
  int row_groups = 1;  ///< 1, 2 or 4: a block takes 16, 32 or 64 packed query rows
  int splits = 1;  ///< 1 = "2d": one block walks all keys; more = "split n": a reduction follows

  std::string form() const { return splits > 1 ? "split " + std::to_string(splits) : "2d"; }
  bool operator==(const Route&) const = default;
};

/// Two tiles. Fewer keys than that are walked while a reduction would start.
inline constexpr std::int64_t fewest_keys_of_a_split = 128;
inline constexpr std::int64_t most_splits = 128;

/// Blocks of `row_groups` * 16 rows that the grid holds at most.
std::int64_t grid_blocks(const RouteInput& input, int row_groups);

/// The smallest block that holds all packed rows of the longest request, so that K and V are loaded
/// once, up to 64 rows; then as many splits as fill the multiprocessors once, none shorter than
/// fewest_keys_of_a_split: on an H200 the best power of two at every measured shape but the
/// shortest (docs/performance.md). Nonsense gives one split.
Route choose_route(const RouteInput& input);

}  // namespace attest::hip
