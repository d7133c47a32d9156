#pragma once

#include <cstdint>
#include <vector>

#include "backends/amx/kernels.hpp"

namespace attest::amx {

/// One (request, kv head, run of packed rows).
struct ExtendItem {
  std::int64_t request = 0, kv_head = 0, first_row = 0, rows = 0;
  std::int64_t cost = 0;  ///< pairs of rows and keys
  std::int64_t shared_blocks =
      -1;  ///< index of the pair's first block in the shared packs; -1 = none
};

/// How a launch is divided. What a row computes does not depend on it.
struct ExtendPlan {
  std::vector<ExtendItem> items;   ///< the costliest first
  std::int64_t row_blocks = 1;     ///< most of one item
  std::int64_t shared_blocks = 0;  ///< of all items together
};
ExtendPlan plan_of(const ExtendArguments& args);

}  // namespace attest::amx
