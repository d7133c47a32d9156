#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "contracts/problem.hpp"

namespace attest {

/// Key or value row: where its bytes come from, independent of where they lie.
/// Encoder token j of a request has position -1 - j.
struct ContentKey {
  std::int64_t sequence = 0;
  std::int64_t position = 0;
  bool operator==(const ContentKey&) const = default;
};

/// Content of text token `position` of `request`: the shared sequence's inside the shared prefix.
ContentKey content_of(const Request& request, std::int64_t position);

/// Logical tokens to physical slots of one Problem. Built once, then O(1) per token.
/// When every request's slots keep whole pages together, `page_size` is the pool's; otherwise
/// (explicit runs that break pages) it is 1 and a "page" is a slot.
struct SlotMap {
  std::int64_t page_size = 1;
  /// pages[i][c]: physical page of tokens [c*page_size, (c+1)*page_size) of request i; -1 =
  /// evicted.
  std::vector<std::vector<std::int64_t>> pages;
  /// Slots of each request's encoder tokens (empty without encoder).
  std::vector<std::vector<std::int64_t>> encoder_slots;

  /// Slot of text token t of request i, or -1 when evicted. t < kv_len.
  std::int64_t slot(std::size_t i, std::int64_t t) const {
    const std::int64_t page = pages[i][static_cast<std::size_t>(t / page_size)];
    return page < 0 ? -1 : page * page_size + t % page_size;
  }
};

/// Places every request's tokens, the shared prefix's whole pages once. Pages of live requests are
/// distinct apart from those. Deterministic in (problem.pool, problem.requests) alone.
/// \pre !problem_error(problem).
SlotMap make_slot_map(const Problem& problem);

/// Physical pages that a placement (no listed slots) takes: shared whole pages count once, padded
/// rows share page 0, which is then reserved. \pre sizes are in range.
std::int64_t pages_needed(const Problem& problem);

/// The inverse: which content each occupied slot holds. Slots absent from it hold nothing.
std::unordered_map<std::int64_t, ContentKey> contents_by_slot(const Problem& problem,
                                                              const SlotMap& slots);

}  // namespace attest
