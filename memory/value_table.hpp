#pragma once

#include "contracts/dtype.hpp"
#include "memory/normal_table.hpp"

namespace attest {

/// What the 4096 equally likely values of a table are.
enum class Distribution {
  normal,      ///< N(0, 1): normal_table(dtype)
  normal_20,   ///< N(0, 1) * 20
  uniform,     ///< (2 i + 1) / 4096 - 1
  positive,    ///< (2 i + 1) / 8192
  small_int,   ///< -4 .. 4 in turn
  sparse_int,  ///< the same where i is a multiple of 4, else 0
};

/// The table of a floating dtype, every value rounded once; built on first use, then shared.
/// \throws std::invalid_argument for a dtype that is not floating
const NormalTable& value_table(Dtype dtype, Distribution distribution);

}  // namespace attest
