#include "backends/hip/route.hpp"

#include <algorithm>

namespace attest::hip {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Larger sizes are nonsense; the limit keeps every product below inside 63 bits.
constexpr std::int64_t largest = std::int64_t{1} << 31;

bool sane(const RouteInput& input) {
  const auto in_range = [](std::int64_t value) { return value >= 1 && value <= largest; };
  return in_range(input.batch) && in_range(input.total_rows) && in_range(input.max_seqlen_q) &&
         in_range(input.max_seqlen_k) && in_range(input.num_kv_heads) && input.group >= 1 &&
         input.group <= 65536 && in_range(input.multiprocessors) &&
         in_range(input.blocks_per_multiprocessor);
}

int row_groups_for(const RouteInput& input) {
  const std::int64_t packed = input.max_seqlen_q * input.group;
  return packed <= 16 ? 1 : packed <= 32 ? 2 : 4;
}

/// Keys that one block may have to walk.
std::int64_t longest_walk(const RouteInput& input) {
  if (input.window_left < 0) return input.max_seqlen_k;
  return std::min(input.max_seqlen_k, input.window_left + input.max_seqlen_q);
}

}  // namespace

std::int64_t grid_blocks(const RouteInput& input, int row_groups) {
  return input.total_rows * input.group / (std::int64_t{16} * row_groups) + input.batch;
}

Route choose_route(const RouteInput& input) {
  Route route;
  if (!sane(input)) return route;
  route.row_groups = row_groups_for(input);
  // Blocks that have work: the grid's bound counts one too many for most requests.
  const std::int64_t rows = std::int64_t{16} * route.row_groups;
  const std::int64_t full = ceil_div(input.total_rows * input.group, rows);
  const std::int64_t blocks = std::max(full, input.batch) * input.num_kv_heads;
  const std::int64_t wanted = input.multiprocessors * input.blocks_per_multiprocessor;
  const std::int64_t most = std::min(longest_walk(input) / fewest_keys_of_a_split, most_splits);
  route.splits = static_cast<int>(
      std::clamp<std::int64_t>(wanted / blocks, 1, std::max<std::int64_t>(most, 1)));
  return route;
}

}  // namespace attest::hip
