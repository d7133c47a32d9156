#pragma once

#include <cstddef>
#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// Every request's pages in one flat array of a call.
struct FlatLists {
  IntArray* offsets = nullptr;    ///< (batch + 1); null: the signature has none
  IntArray* entries = nullptr;    ///< page ids
  IntArray* last_lens = nullptr;  ///< (batch) tokens of the last pages; null where it has none
  std::int64_t page_size = 1;
  std::int64_t pool = 0;  ///< pages of the pool

  std::int64_t begin(std::size_t i) const { return offsets->values[i]; }
  std::int64_t count(std::size_t i) const { return offsets->values[i + 1] - offsets->values[i]; }
  std::int64_t& entry(std::size_t i, std::int64_t column) const {
    return entries->values[static_cast<std::size_t>(begin(i) + column)];
  }
};

/// Those of the call, to be changed in place.
FlatLists flat_lists_of(Call& call);

}  // namespace attest
