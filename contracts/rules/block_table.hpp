#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Page addresses of unified and vllm_cpu.
std::span<const Rule> block_table_rules();

}  // namespace attest
