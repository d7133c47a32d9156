#include "property_tests/misread/kernel_view.hpp"

#include <algorithm>
#include <stdexcept>

#include "contracts/signatures/pool_view.hpp"

namespace attest {
namespace {

/// The parts of a call that a view is made of.
struct Parts {
  TensorMeta k, v;
  const IntArray* lists = nullptr;
  const IntArray* offsets = nullptr;  ///< of lists; null: a table
  const IntArray* rows = nullptr;     ///< of the table; null: request i has row i
  std::int64_t page = 1;
  bool new_apart = false;  ///< new keys come from tensors of their own
  bool stores_first = false;
  bool mask_has_prefix = false;
};

Parts parts_of(const UnifiedCall& c) {
  return {.k = c.k, .v = c.v, .lists = &c.block_table, .page = c.k.size(1)};
}
Parts parts_of(const ExtendCall& c) {
  return {.k = c.k_buffer,
          .v = c.v_buffer,
          .lists = &c.req_to_token,
          .rows = &c.req_pool_indices,
          .new_apart = !c.is_cross_attn};
}
Parts parts_of(const DecodeCall& c) {
  return {.k = c.k_buffer,
          .v = c.v_buffer,
          .lists = &c.req_to_token,
          .rows = &c.req_pool_indices,
          .stores_first = true};
}
Parts parts_of(const MlaDecodeCall& c) {
  return {.k = c.kv_buffer,
          .v = c.kv_buffer,
          .lists = &c.kv_indices,
          .offsets = &c.kv_indptr,
          .page = c.page_size};
}
Parts parts_of(const BatchPrefillCall& c) {
  return {.k = c.k, .v = c.v, .lists = &c.kv_page_indices, .offsets = &c.kv_indptr};
}
Parts parts_of(const PagedRaggedCall& c) {
  return {.k = c.key_cache,
          .v = c.value_cache,
          .lists = &c.kv_page_indices,
          .offsets = &c.kv_indptr,
          .page = c.block_size};
}
Parts parts_of(const LegacyExtendCall& c) {
  return {.k = c.k_buffer,
          .v = c.v_buffer,
          .lists = &c.kv_indices,
          .offsets = &c.kv_indptr,
          .new_apart = true,
          .mask_has_prefix = true};
}
Parts parts_of(const VllmCpuCall& c) {
  return {.k = swap_heads_and_tokens(c.key_cache),
          .v = swap_heads_and_tokens(c.value_cache),
          .lists = &c.block_table,
          .page = c.key_cache.size(2)};
}

/// Strides of pages of `page` keys; nothing where the pool's own pages are others.
std::optional<KernelView::Strides> strides_of(const PoolLayout& pool, std::int64_t page) {
  const std::int64_t slot = pool.page_slots == 1 ? pool.page_stride : pool.slot_stride;
  if (pool.page_slots == page)
    return {{pool.page_stride, page == 1 ? slot : pool.slot_stride, pool.head_stride}};
  const bool even = pool.page_slots == 1 || pool.page_stride == pool.page_slots * slot;
  if (!even) return std::nullopt;
  return {{page * slot, slot, pool.head_stride}};
}

std::int64_t begin_of(const Parts& parts, std::size_t i, std::int64_t& table_row) {
  if (parts.offsets != nullptr) return (*parts.offsets)[i];
  if (parts.rows != nullptr) table_row = (*parts.rows)[i];
  return table_row * parts.lists->size(1);
}

bool has_all_requests(const Parts& parts, std::size_t batch) {
  if (parts.lists == nullptr || !parts.lists->recorded || parts.page < 1) return false;
  if (parts.offsets != nullptr) return parts.offsets->values.size() > batch;
  if (parts.rows != nullptr) return parts.rows->values.size() >= batch;
  return parts.lists->meta.shape.size() == 2 &&
         parts.lists->size(0) >= static_cast<std::int64_t>(batch);
}

void add_requests(const Parts& parts, const Problem& p, KernelView& view) {
  std::int64_t row = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    ViewedRequest& one = view.requests.emplace_back();
    one.first_row = row;
    one.rows = r.new_tokens;
    one.table_row = static_cast<std::int64_t>(i);
    one.begin = begin_of(parts, i, one.table_row);
    one.tree = !r.tree_parent.empty();
    const bool cross = p.model.cross_attention;
    one.keys = cross ? r.encoder_tokens : r.kv_len();
    one.pooled = parts.new_apart ? r.committed : one.keys;
    if (!cross) one.begin += one.encoder = r.encoder_tokens;
    row += r.new_tokens;
  }
}

}  // namespace

const ViewedRequest& KernelView::request_of(std::int64_t row) const {
  return requests[static_cast<std::size_t>(truth->rows[static_cast<std::size_t>(row)].request)];
}

std::vector<std::int64_t> KernelView::positions(std::int64_t row) const {
  std::vector<std::int64_t> seen;
  for (const KeyRun& run : truth->rows[static_cast<std::size_t>(row)].keys) {
    for (std::int64_t p = run.first; p < run.first + run.count; ++p) {
      seen.push_back(p < 0 ? -1 - p : p);  // token j of an encoder has position -1 - j
    }
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

std::optional<KernelView> view_of(const Call& call, const TensorSource& source,
                                  const Attended& truth) {
  const Parts parts = std::visit([](const auto& c) { return parts_of(c); }, call);
  const Problem& p = source.problem();
  if (!has_all_requests(parts, p.requests.size())) return std::nullopt;
  KernelView view{.source = &source, .truth = &truth};
  try {
    view.k = pool_layout(parts.k, p.pool.page_size, "K pool");
    view.v = pool_layout(parts.v, p.pool.page_size, "V pool");
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  const auto k = strides_of(view.k, parts.page);
  const auto v = strides_of(view.v, parts.page);
  if (!k || !v) return std::nullopt;
  view.k_strides = *k;
  view.v_strides = *v;
  view.entries = parts.lists->values;
  view.columns = parts.offsets == nullptr ? parts.lists->size(1) : 0;
  view.page = parts.page;
  view.new_apart = parts.new_apart;
  view.stores_first = parts.stores_first;
  view.mask_has_prefix = parts.mask_has_prefix;
  add_requests(parts, p, view);
  return view;
}

}  // namespace attest
