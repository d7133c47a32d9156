#pragma once

#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// Compute units of an MI300X. An MI355X has 256.
inline constexpr std::int64_t mi300x_compute_units = 304;

/// The form that the host code of `unified_attention` chooses, its number of KV segments and how
/// many q heads share one load of K/V (1 where a framework expanded the kv heads). Layout, ranks
/// and sizes are taken as they stand; nonsense gives "2d".
/// Source: ROCm/aiter aiter/ops/triton/attention/unified_attention.py, use_2d_kernel and
/// select_3d_config (CDNA branch).
Launch unified_launch(const UnifiedCall& call, std::int64_t compute_units = mi300x_compute_units);

/// Bytes of K and V that the launch's programs ask for: every key that a form walks, once for each
/// of the loads its kv heads' q heads share. The split form walks all keys of a windowed layer, the
/// other one begins at the window. Nonsense gives 0.
std::int64_t kv_bytes_requested(const UnifiedCall& call, const Launch& launch);

/// Keys per tile of the split form: a page, at most 64 of them.
std::int64_t split_tile(const UnifiedCall& call);

/// Whether the split form accepts the call's page size: its host code asserts that a page is at
/// least a tile, or a tile whole pages. False for 48 (tile 64).
bool split_tile_fits_page(const UnifiedCall& call);

}  // namespace attest
