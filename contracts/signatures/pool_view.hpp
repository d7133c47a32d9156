#pragma once

#include <cstdint>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// `strides` with the zeros replaced by the dense values of a pool of `page_size`-token pages,
/// `heads` heads and `dim` elements a head.
KvStrides dense_where_zero(KvStrides strides, std::int64_t page_size, std::int64_t heads,
                           std::int64_t dim);

/// `strides` with the zeros replaced by the dense values of a pool of the Problem's pages that has
/// heads before tokens: (num_pages, heads, page_size, dim).
KvStrides heads_first(const Problem& problem, KvStrides strides, std::int64_t dim);

/// (num_pages, page_size, heads, dim) as (num_pages, heads, page_size, dim), and back; other ranks
/// stay.
TensorMeta swap_heads_and_tokens(TensorMeta view);

/// The K or V pool of a Problem as a (num_pages, page_size, num_kv_heads, dim) tensor. Its storage
/// is the one the Problem names, and ends with its last element.
TensorMeta paged_view(const Problem& problem, const KvStrides& strides, std::int64_t dim);

/// The same pool as one token a page: (slots, 1, num_kv_heads, dim).
/// \pre flat(problem, strides, dim)
TensorMeta slot_view(const Problem& problem, const KvStrides& strides, std::int64_t dim);

/// slot_view without its page dimension, (slots, heads, dim), and back; other ranks stay.
TensorMeta without_pages(TensorMeta view);
TensorMeta with_pages(TensorMeta view);

/// Whether slot s lies at s * slot stride, so that a page-1 view addresses it.
bool flat(const Problem& problem, const KvStrides& strides, std::int64_t dim);

/// Whether element (page, offset, head) of `view` is slot page * view.page_size + offset of the
/// Problem's pool for every page, a head dimension of stride 0 apart. False for views of another
/// rank.
bool addresses_pool(const TensorMeta& view, const Problem& problem, const KvStrides& strides,
                    std::int64_t dim);

/// Heads that differ: 1 when a framework expanded one head over the whole dimension (stride 0).
std::int64_t distinct_heads(const TensorMeta& view, std::size_t head_dimension);

}  // namespace attest
