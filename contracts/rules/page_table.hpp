#pragma once

#include <algorithm>
#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// The page addresses of a signature that has a row of page ids for every request.
struct PageTable {
  const IntArray& cells;    ///< (batch or more, columns)
  const IntArray& lengths;  ///< (batch) KV lengths, this step's tokens included
  std::int64_t page_size;
  std::int64_t pages;  ///< of the smaller of the two caches
};

inline PageTable page_table(const UnifiedCall& c) {
  return {c.block_table, c.seqused_k, c.k.size(1), std::min(c.k.size(0), c.v.size(0))};
}
inline PageTable page_table(const VllmCpuCall& c) {
  return {c.block_table, c.seq_lens, c.key_cache.size(2),
          std::min(c.key_cache.size(0), c.value_cache.size(0))};
}

/// A rule on the table as a rule on the call.
template <void (*rule)(const PageTable&, const Truth&, Report&), class CallType>
void on_table(const CallType& call, const Truth& truth, Report& report) {
  rule(page_table(call), truth, report);
}

}  // namespace attest
