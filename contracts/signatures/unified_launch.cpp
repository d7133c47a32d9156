#include "contracts/signatures/unified_launch.hpp"

#include <algorithm>
#include <bit>

#include "contracts/dtype.hpp"

namespace attest {
namespace {

// Larger sizes are nonsense; the limit keeps every product below inside 63 bits.
constexpr std::int64_t max_size = std::int64_t{1} << 31;

std::int64_t next_power_of_two(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool in_range(std::int64_t value) { return value >= 1 && value <= max_size; }

/// Programs of the grid before segments: q blocks times kv heads.
std::int64_t programs(const UnifiedCall& call, std::int64_t group) {
  const std::int64_t batch = call.seqused_k.size(0);
  const std::int64_t block_m = group <= 16 ? 16 : next_power_of_two(group);
  const std::int64_t block_q = std::max<std::int64_t>(1, block_m / group);
  const std::int64_t blocks = call.max_seqlen_q == 1 ? batch : call.q.size(0) / block_q + batch;
  return blocks * call.k.size(2);
}

bool prefers_2d(const UnifiedCall& call, std::int64_t grid, std::int64_t compute_units) {
  const bool windowed = call.window_size[0] >= 0;
  const bool wide_head = call.q.size(2) >= 512;
  return windowed || call.max_seqlen_k <= 512 || grid > 4 * compute_units ||
         (wide_head && call.max_seqlen_q != 1);
}

}  // namespace

std::int64_t split_tile(const UnifiedCall& call) {
  if (!in_range(call.k.size(1))) return 64;
  const std::int64_t tile = std::min<std::int64_t>(64, next_power_of_two(call.k.size(1)));
  return is_fp8(call.q.dtype) && is_fp8(call.k.dtype) ? std::max<std::int64_t>(32, tile) : tile;
}

bool split_tile_fits_page(const UnifiedCall& call) {
  const std::int64_t page = call.k.size(1);
  const std::int64_t tile = split_tile(call);
  return in_range(page) && (tile <= page || tile % page == 0);
}

std::int64_t kv_bytes_requested(const UnifiedCall& call, const Launch& launch) {
  const std::int64_t q_heads = call.q.size(1);
  const std::int64_t kv_heads = call.k.size(2);
  const bool sane = in_range(q_heads) && q_heads <= 4096 && in_range(kv_heads) &&
                    kv_heads <= q_heads && in_range(call.k.size(3)) && in_range(call.v.size(3)) &&
                    launch.queries_per_kv >= 1 && in_range(call.max_seqlen_q);
  if (!sane) return 0;
  const std::int64_t row =
      (call.k.size(3) + call.v.size(3)) * static_cast<std::int64_t>(size_bytes(call.k.dtype));
  const bool prunes = launch.form == "2d" && call.window_size[0] >= 0;
  const std::int64_t shown = std::min(call.window_size[0], max_size) + call.max_seqlen_q;
  double keys = 0;  // of nonsense lengths too
  for (const std::int64_t length : call.seqused_k.values) {
    if (length > 0) keys += static_cast<double>(prunes ? std::min(length, shown) : length);
  }
  const std::int64_t loads = std::max<std::int64_t>(q_heads / launch.queries_per_kv, kv_heads);
  const double bytes = keys * static_cast<double>(row) * static_cast<double>(loads);
  return bytes < 9e18 ? static_cast<std::int64_t>(bytes) : 0;
}

Launch unified_launch(const UnifiedCall& call, std::int64_t compute_units) {
  Launch launch{.form = "2d", .kv_splits = 1, .queries_per_kv = 1};
  const std::int64_t q_heads = call.q.size(1);
  const std::int64_t kv_heads = call.k.size(2);
  if (!in_range(q_heads) || !in_range(kv_heads) || q_heads < kv_heads) return launch;
  launch.queries_per_kv = q_heads / kv_heads;
  const bool sane = in_range(call.q.size(0)) && in_range(call.seqused_k.size(0)) &&
                    in_range(call.k.size(1)) && in_range(compute_units) &&
                    call.max_seqlen_k <= max_size && kv_heads <= 4096;
  if (!sane) return launch;
  const std::int64_t grid = programs(call, launch.queries_per_kv);
  if (prefers_2d(call, grid, compute_units)) return launch;

  const bool wide_head = call.q.size(2) >= 512;
  const std::int64_t programs_per_unit = wide_head ? 2 : 4;  // 8 / warps
  const std::int64_t most =
      std::min<std::int64_t>(128, ceil_div(call.max_seqlen_k, split_tile(call)));
  const std::int64_t least = std::min<std::int64_t>(wide_head ? 16 : 8, most);
  const std::int64_t wanted = ceil_div(4 * compute_units * programs_per_unit, grid);
  launch.form = "3d";
  launch.kv_splits = next_power_of_two(std::clamp(wanted, least, most));
  return launch;
}

}  // namespace attest
