#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Widths of the offsets that extend and decode compute: where 32 bits do not suffice.
std::span<const Rule> cpu_offsets_rules();

}  // namespace attest
