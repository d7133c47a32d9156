#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "contracts/rule.hpp"

namespace attest {

/// Every rule, by field. The table is rules.cpp; the functions are rules/<field>.cpp.
std::span<const Rule> all_rules();

/// nullptr when there is none of that id.
const Rule* find_rule(std::string_view id);

/// Runs every rule that applies to the call's signature. Shape rules run first; a call whose arrays
/// do not even have the right rank and size gets those findings alone, so no later rule reads past
/// an array. Never throws on a bad call; never reads outside a values vector. Cost: O(entries of
/// the metadata); a batch of 256 at page 64 and 4k keys is checked in < 1 ms.
Report check(const Call& call, const Truth& truth);

}  // namespace attest
