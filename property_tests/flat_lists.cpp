#include "property_tests/flat_lists.hpp"

namespace attest {

FlatLists flat_lists_of(Call& call) {
  if (auto* c = std::get_if<BatchPrefillCall>(&call)) {
    return {&c->kv_indptr, &c->kv_page_indices, nullptr, 1, c->k.size(0)};
  }
  if (auto* c = std::get_if<PagedRaggedCall>(&call)) {
    return {&c->kv_indptr, &c->kv_page_indices, &c->kv_last_page_lens, c->block_size,
            c->key_cache.size(0)};
  }
  if (auto* c = std::get_if<LegacyExtendCall>(&call)) {
    return {&c->kv_indptr, &c->kv_indices, nullptr, 1, c->k_buffer.size(0)};
  }
  if (auto* c = std::get_if<MlaDecodeCall>(&call)) {
    return {&c->kv_indptr, &c->kv_indices, &c->kv_last_page_lens, c->page_size,
            c->kv_buffer.size(0)};
  }
  return {};
}

}  // namespace attest
