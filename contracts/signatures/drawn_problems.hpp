#pragma once

#include <cstdint>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// For properties of signatures and rules; all draw from RapidCheck's current case.

/// An integer in [low, high].
std::int64_t in(std::int64_t low, std::int64_t high);
/// A small legal problem of any mode: uneven lengths, padded rows, shared prefixes, a window.
Problem draw_problem();
/// The same for an MLA layer, every request with one length.
Problem draw_mla_problem();

/// Moves one of the values a little or replaces it by another one.
void edit(std::vector<std::int64_t>& values);
/// Small, large, or anything.
std::int64_t any_number();
/// Now and then replaces some of the numbers by anything and drops the last one.
void disturb(std::vector<std::int64_t>& numbers);

/// Fails the case where the call reads other keys than the problem means and no rule rejects it.
void require_a_rule_for_other_keys(const Call& call, const Problem& p, const SlotMap& slots);

/// The result of rc::check as a GoogleTest expectation.
void expect(bool ok);

}  // namespace attest
