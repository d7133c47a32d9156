#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// What only paged_ragged asks for: partitions, scratch memory, one row a request.
std::span<const Rule> partitions_rules();

}  // namespace attest
