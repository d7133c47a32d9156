#pragma once

#include <cstddef>
#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/signatures/slot_contents.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// The lists of a call at page size 1: every key's slot, request by request.
void list_every_slot(const Problem& problem, const SlotMap& slots, IntArray& indptr,
                     IntArray& indices, IntArray& last_page_lens);

/// The keys of a signature that lists its pages in one flat array: request i has entries
/// [indptr[i], indptr[i + 1]).
struct PageList {
  const IntArray& indptr;
  const IntArray& indices;
  const IntArray* last_page_lens = nullptr;  ///< tokens in each last page; unread at page size 1
  std::int64_t page_size = 1;
  std::int64_t num_pages = 0;  ///< of the cache; reads outside it hold nothing

  /// KV tokens of request i: whole pages but the last. \pre i + 1 < indptr.values.size()
  std::int64_t length(std::size_t i) const;
  /// Appends what request i's tokens hold until `keys` stands at token `last`. With `usable` false
  /// (the cache is not the Problem's) every token is read outside. \pre as length
  void read(std::size_t i, std::int64_t last, bool usable, RowKeys& keys) const;
};

}  // namespace attest
