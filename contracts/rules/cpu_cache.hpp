#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What only vllm_cpu asks for: blocks, head sizes and types that a form of its kernel takes.
std::span<const Rule> cpu_cache_rules();

}  // namespace attest
