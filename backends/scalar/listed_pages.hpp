#pragma once

#include <cstdint>

#include "backends/scalar/execution.hpp"

namespace attest {

/// Keys of a call that lists every request's pages in one flat array.
struct ListedPages {
  const IntArray& indptr;  ///< (batch + 1): request i has entries [indptr[i], indptr[i + 1])
  const IntArray& indices;
  const char* indices_name;
  std::int64_t page_size = 1;

  /// Pages of request i. \throws KernelRefusal when indptr ends before.
  std::int64_t pages(std::int64_t i) const;
  /// First entry of request i. A mistake spaces the lists by the longest of them.
  std::int64_t first_entry(std::int64_t i, Fault fault) const;
  /// The rows of one token of request i. \throws KernelRefusal outside the array or the pool.
  KeyRow key(const KvPools& pools, std::int64_t i, std::int64_t token,
             const Mistake& mistake) const;
  /// The rows of the token at `in_page` of entry `e`'s page. \throws KernelRefusal likewise
  KeyRow entry(const KvPools& pools, std::int64_t e, std::int64_t in_page,
               const Mistake& mistake) const;
  /// The same, entry `e` naming `page`. \throws KernelRefusal outside the pool
  KeyRow row_of(const KvPools& pools, std::int64_t e, std::int64_t page, std::int64_t in_page,
                const Mistake& mistake) const;
};

}  // namespace attest
