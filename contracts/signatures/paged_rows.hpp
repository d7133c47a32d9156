#pragma once

#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/signatures/query_rows.hpp"
#include "contracts/signatures/slot_contents.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// Rows and keys of a signature with query offsets, total lengths and a row of page ids for every
/// request. The last row of a request stands at its last key.
struct PagedRows {
  const IntArray& offsets;
  const IntArray& lengths;
  const IntArray& table;
  std::int64_t page_size = 1;
  std::int64_t num_pages = 0;  ///< of the cache; reads outside it hold nothing
  std::int64_t window = 0;     ///< visible keys, the row's own included; 0 = all
  bool causal = true;
  bool row_is_request = false;  ///< row i belongs to request i, whatever the offsets say
  bool usable = true;           ///< the cache is the Problem's

  /// Covers the rows of every request.
  void read(SlotContents& contents, QueryRows& rows) const;
};

/// The arrays of a call that says the Problem in this form.
IntArray new_token_offsets(const Problem& problem);
IntArray total_lengths(const Problem& problem, Dtype dtype);
/// A table with columns for `tokens` tokens. Evicted and unused cells name a page of the request
/// itself: a tile may still load them, and those bytes are finite.
IntArray page_ids(const Problem& problem, const SlotMap& slots, std::int64_t tokens);

}  // namespace attest
