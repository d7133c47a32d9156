#pragma once

#include <cstdint>

#include "memory/poison.hpp"

namespace attest {

/// Which of the two pools of a layer.
enum class PoolHalf { k, v };

/// A kernel's first read of a stretch of poison in a sparse pool (64 KiB): where a wrong address
/// pointed. Only whole stretches without a page in use are seen, so past_kv_len never appears.
struct StrayRead {
  PoolHalf half = PoolHalf::k;
  std::int64_t offset = 0;  ///< bytes from the base
  Region region = Region::unreferenced;
  std::uint64_t instruction = 0;  ///< address of the instruction that read
  bool operator==(const StrayRead&) const = default;
};

}  // namespace attest
