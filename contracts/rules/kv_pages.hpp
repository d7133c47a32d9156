#pragma once

#include <cstdint>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// The offsets and page ids of a signature that lists its keys in one flat array.
struct KvPages {
  const IntArray& kv_indptr;
  const IntArray& kv_indices;
  std::string_view indices_name;      ///< the kernel's own name of kv_indices
  const IntArray& kv_last_page_lens;  ///< read only when page_size > 1
  std::int64_t page_size;
  std::int64_t num_pages;
  bool new_tokens = true;  ///< whether the pages of this step's tokens are listed too

  std::int64_t tokens(const Request& r) const { return new_tokens ? r.kv_len() : r.committed; }
};

inline KvPages kv_pages(const MlaDecodeCall& c) {
  return {c.kv_indptr,         c.kv_indices, "kv_indices",
          c.kv_last_page_lens, c.page_size,  c.kv_buffer.size(0)};
}

/// One token a page.
inline KvPages kv_pages(const BatchPrefillCall& c) {
  static const IntArray none;
  return {c.kv_indptr, c.kv_page_indices, "kv_page_indices", none, 1, c.k.size(0)};
}

inline KvPages kv_pages(const PagedRaggedCall& c) {
  return {c.kv_indptr,         c.kv_page_indices, "kv_page_indices",
          c.kv_last_page_lens, c.block_size,      c.key_cache.size(0)};
}

/// One token a page, and the committed ones only.
inline KvPages kv_pages(const LegacyExtendCall& c) {
  static const IntArray none;
  return {c.kv_indptr, c.kv_indices, "kv_indices", none, 1, c.k_buffer.size(0), false};
}

}  // namespace attest
