#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Page addresses of unified.
std::span<const Rule> block_table_rules();

}  // namespace attest
