#include "contracts/signatures/pool_view.hpp"

#include <utility>

namespace attest {
namespace {

std::int64_t bytes(const Model& model) {
  return static_cast<std::int64_t>(size_bytes(model.kv_dtype));
}

}  // namespace

KvStrides dense_where_zero(KvStrides strides, std::int64_t page_size, std::int64_t heads,
                           std::int64_t dim) {
  if (strides.head == 0) strides.head = dim;
  if (strides.slot == 0) strides.slot = heads * dim;
  if (strides.page == 0) strides.page = page_size * strides.slot;
  return strides;
}

KvStrides heads_first(const Problem& problem, KvStrides strides, std::int64_t dim) {
  if (strides.slot == 0) strides.slot = dim;
  if (strides.head == 0) strides.head = problem.pool.page_size * strides.slot;
  if (strides.page == 0) strides.page = problem.model.num_kv_heads * strides.head;
  return strides;
}

TensorMeta swap_heads_and_tokens(TensorMeta view) {
  if (view.shape.size() != 4 || view.strides.size() != 4) return view;
  std::swap(view.shape[1], view.shape[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

TensorMeta paged_view(const Problem& problem, const KvStrides& strides, std::int64_t dim) {
  const Pool& pool = problem.pool;
  const std::int64_t heads = problem.model.num_kv_heads;
  const KvStrides s = dense_where_zero(strides, pool.page_size, heads, dim);
  const std::int64_t base = s.storage.empty() ? 0 : s.base;
  const std::int64_t last =
      (pool.num_pages - 1) * s.page + (pool.page_size - 1) * s.slot + (heads - 1) * s.head + dim;
  return {.dtype = problem.model.kv_dtype,
          .shape = {pool.num_pages, pool.page_size, heads, dim},
          .strides = {s.page, s.slot, s.head, 1},
          .storage_offset = base,
          .storage_bytes = (base + last) * bytes(problem.model),
          .storage = s.storage};
}

TensorMeta slot_view(const Problem& problem, const KvStrides& strides, std::int64_t dim) {
  TensorMeta view = paged_view(problem, strides, dim);
  view.shape = {view.shape[0] * view.shape[1], 1, view.shape[2], dim};
  view.strides[0] = view.strides[1];
  return view;
}

TensorMeta without_pages(TensorMeta view) {
  if (view.shape.size() != 4 || view.strides.size() != 4) return view;
  view.shape.erase(view.shape.begin() + 1);
  view.strides.erase(view.strides.begin() + 1);
  return view;
}

TensorMeta with_pages(TensorMeta view) {
  if (view.shape.size() != 3 || view.strides.size() != 3) return view;
  view.shape.insert(view.shape.begin() + 1, 1);
  view.strides.insert(view.strides.begin() + 1, view.strides[0]);
  return view;
}

bool flat(const Problem& problem, const KvStrides& strides, std::int64_t dim) {
  const std::int64_t page_size = problem.pool.page_size;
  const KvStrides s = dense_where_zero(strides, page_size, problem.model.num_kv_heads, dim);
  return page_size == 1 || s.page == page_size * s.slot;
}

bool addresses_pool(const TensorMeta& view, const Problem& problem, const KvStrides& strides,
                    std::int64_t dim) {
  if (view.shape.size() != 4 || view.strides.size() != 4) return false;
  const std::int64_t pool_page = problem.pool.page_size;
  const KvStrides s = dense_where_zero(strides, pool_page, problem.model.num_kv_heads, dim);
  const std::int64_t view_page = view.shape[1];
  const bool one_head = view.shape[2] <= 1 || view.strides[2] == 0;
  if (view_page < 1 || view.strides[3] != 1) return false;
  if (!one_head && view.strides[2] != s.head) return false;
  if (view_page == pool_page) {
    return (view.shape[0] <= 1 || view.strides[0] == s.page) &&
           (view_page == 1 || view.strides[1] == s.slot);
  }
  // Another page size names the same slots only where the pool has no gaps between its pages.
  std::int64_t view_page_stride = 0;
  return flat(problem, strides, dim) && (view_page == 1 || view.strides[1] == s.slot) &&
         !__builtin_mul_overflow(view_page, pool_page == 1 ? s.page : s.slot, &view_page_stride) &&
         view.strides[0] == view_page_stride;
}

std::int64_t distinct_heads(const TensorMeta& view, std::size_t head_dimension) {
  const std::int64_t heads = view.size(head_dimension);
  const bool expanded =
      heads > 1 && head_dimension < view.strides.size() && view.stride(head_dimension) == 0;
  return expanded ? 1 : heads;
}

}  // namespace attest
