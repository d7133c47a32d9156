#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Element types of unified and mla_decode.
std::span<const Rule> dtypes_rules();

}  // namespace attest
