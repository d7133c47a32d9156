#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Element types of extend and decode.
std::span<const Rule> cpu_dtypes_rules();

}  // namespace attest
