#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// Why `signature` has no argument for what the Problem needs, or nothing.
std::optional<std::string> refuses_cross_attention(const Problem& problem,
                                                   std::string_view signature);
/// A tree that is a chain is plain causal order and passes.
std::optional<std::string> refuses_draft_tree(const Problem& problem, std::string_view signature);

/// A key that some new token sees must have a slot.
std::optional<std::string> refuses_evicted_keys(const Problem& problem, const SlotMap& slots);
/// Page or slot ids are int32.
std::optional<std::string> refuses_wide_ids(std::int64_t count, std::string_view what);
/// So are the offsets into one flat list of every request's slots, and the slots.
std::optional<std::string> refuses_wide_slot_lists(const Problem& problem);

/// Whether token t's parent is t - 1 throughout, so that causal order is the mask.
bool is_chain(const Request& request);

/// First token of the request's text that one of its new tokens sees: 0 without a window.
std::int64_t first_visible(const Model& model, const Request& request);

}  // namespace attest
