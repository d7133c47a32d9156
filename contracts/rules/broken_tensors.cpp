#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem one_kv_head() {
  Problem p = uneven_verify();
  p.model.num_kv_heads = 1;
  return p;
}

void expand_heads(UnifiedCall& call) {
  for (TensorMeta* pool : {&call.k, &call.v}) {
    pool->shape[2] = call.q.shape[1];
    pool->strides[2] = 0;
  }
}

void break_heads(BrokenCalls& calls) {
  calls.unified("heads.divide_evenly", "three q heads over two kv heads", uneven_verify(),
                [](UnifiedCall& c) {
                  c.q = contiguous(c.q.dtype, {5, 3, 32});
                  c.out = contiguous(c.out.dtype, {5, 3, 32});
                });
  calls.unified("heads.are_the_layers", "both kv heads are shown as the first one", uneven_verify(),
                expand_heads);
  calls.mla("heads.are_the_layers", "the q heads of one rank of two", mla_verify(),
            [](MlaDecodeCall& c) { c.q = contiguous(c.q.dtype, {4, 8, 576}); });
  calls.unified("heads.are_not_expanded", "the one kv head is expanded over the q heads",
                one_kv_head(), expand_heads);
  Problem six_heads = mla_verify();
  six_heads.model.num_q_heads = 6;
  calls.unsaid("heads.fit_the_mla_kernels", "six q heads of a small rank", six_heads, six_heads);
}

void break_sizes(BrokenCalls& calls) {
  calls.unified("q.holds_every_new_token", "q is of a smaller batch", uneven_verify(),
                [](UnifiedCall& c) { c.q = contiguous(c.q.dtype, {4, 4, 32}); });
  calls.mla("q.holds_every_new_token", "q is of a smaller batch", mla_verify(),
            [](MlaDecodeCall& c) { c.q = contiguous(c.q.dtype, {2, 16, 576}); });
  calls.unified("out.holds_every_row", "out has one row per request", uneven_verify(),
                [](UnifiedCall& c) { c.out = contiguous(c.out.dtype, {2, 4, 32}); });
  calls.mla("out.holds_every_row", "o has one row per request", mla_verify(),
            [](MlaDecodeCall& c) { c.o = contiguous(c.o.dtype, {2, 16, 512}); });
  calls.unified("out.rows_do_not_overlap", "rows of out are one head apart", uneven_verify(),
                [](UnifiedCall& c) { c.out.strides[0] = 32; });
  calls.mla("out.rows_do_not_overlap", "heads of o are half a head apart", mla_verify(),
            [](MlaDecodeCall& c) { c.o.strides[1] = 256; });
  calls.unified("head_dim.is_the_layers", "out has half of every head", uneven_verify(),
                [](UnifiedCall& c) { c.out = contiguous(c.out.dtype, {5, 4, 16}); });
  calls.mla("head_dim.is_the_layers", "o has the cache's head size", mla_verify(),
            [](MlaDecodeCall& c) { c.o = contiguous(c.o.dtype, {4, 16, 576}); });
  Problem wide_v = uneven_verify();
  wide_v.model.v_head_dim = 64;
  calls.unsaid("head_dim.is_one_size", "v's heads are twice as wide as q's", wide_v, wide_v);
}

void break_layout(BrokenCalls& calls) {
  calls.unified("layout.last_dimension_is_dense", "q's last dimension is strided", uneven_verify(),
                [](UnifiedCall& c) { c.q.strides = {256, 64, 2}; });
  calls.mla("layout.last_dimension_is_dense", "o's last dimension is strided", mla_verify(),
            [](MlaDecodeCall& c) { c.o.strides = {16384, 1024, 2}; });
  calls.mla("layout.q_is_contiguous", "q is a slice of a fused projection", mla_verify(),
            [](MlaDecodeCall& c) { c.q.strides = {10240, 640, 1}; });
  calls.unified("layout.cache_is_the_pool", "pages of 16 tokens viewed as pages of 8 too far apart",
                uneven_verify(), [](UnifiedCall& c) { c.k.shape[1] = c.v.shape[1] = 8; });
  calls.mla("layout.cache_is_the_pool", "tokens are taken for twice as wide", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_buffer.strides[0] = 1152; });
}

void break_dtypes(BrokenCalls& calls) {
  calls.unified("dtypes.are_the_layers", "the bf16 cache is passed as fp16", uneven_verify(),
                [](UnifiedCall& c) { c.k.dtype = c.v.dtype = Dtype::f16; });
  calls.mla("dtypes.are_the_layers", "the bf16 cache is passed as fp16", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_buffer.dtype = Dtype::f16; });
  Problem narrow_q = uneven_verify();
  narrow_q.model.q_dtype = Dtype::fp8_e4m3fn;
  calls.unsaid("dtypes.q_is_not_narrower_than_the_cache", "q is quantised, the cache is not",
               narrow_q, uneven_verify(),
               [](Call& c) { std::get<UnifiedCall>(c).q.dtype = Dtype::fp8_e4m3fn; });
  calls.unified("dtypes.index_arrays_are_int32", "the table is int64", uneven_verify(),
                [](UnifiedCall& c) { c.block_table.meta.dtype = Dtype::int64; });
  calls.mla("dtypes.index_arrays_are_int32", "kv_indptr is int64", mla_verify(),
            [](MlaDecodeCall& c) { c.kv_indptr = int_array(Dtype::int64, c.kv_indptr.values); });
  calls.unified("dtypes.index_arrays_are_dense", "seqused_k is every other entry of an array",
                uneven_verify(), [](UnifiedCall& c) { c.seqused_k.meta.strides = {2}; });
  calls.mla("dtypes.index_arrays_are_dense", "qo_indptr is every other entry of an array",
            mla_verify(), [](MlaDecodeCall& c) { c.qo_indptr.meta.strides = {2}; });
}

}  // namespace

void break_shapes(BrokenCalls& calls) {
  calls.unified("tensors.have_their_rank", "the cache is a flat list of slots", uneven_verify(),
                [](UnifiedCall& c) { c.k = contiguous(c.k.dtype, {c.k.shape[0] * 16, 2, 32}); });
  calls.mla("tensors.have_their_rank", "the latent head has no dimension", mla_verify(),
            [](MlaDecodeCall& c) {
              c.kv_buffer = contiguous(c.kv_buffer.dtype, {c.kv_buffer.shape[0], 1, 576});
            });
  calls.unified("query_offsets.have_one_entry_more_than_requests", "lengths instead of offsets",
                uneven_verify(),
                [](UnifiedCall& c) { c.cu_seqlens_q = int_array(Dtype::int32, {3, 2}); });
  calls.mla("query_offsets.have_one_entry_more_than_requests", "kv_indptr without its last entry",
            mla_verify(), [](MlaDecodeCall& c) { c.kv_indptr = int_array(Dtype::int32, {0, 20}); });
  calls.unified("seqused_k.has_one_entry_per_request", "lengths of the first request only",
                uneven_verify(),
                [](UnifiedCall& c) { c.seqused_k = int_array(Dtype::int64, {38}); });
  calls.mla("seqused_k.has_one_entry_per_request", "one last page length for two requests",
            mla_verify(),
            [](MlaDecodeCall& c) { c.kv_last_page_lens = int_array(Dtype::int32, {1}); });
  calls.unified("block_table.has_a_row_per_request", "the table's row of the second request is cut",
                uneven_verify(), [](UnifiedCall& c) {
                  auto& cells = c.block_table.values;
                  cells.resize(cells.size() / 2);
                  c.block_table =
                      int_matrix(Dtype::int32, 1, static_cast<std::int64_t>(cells.size()), cells);
                });
  calls.unified("cache.has_pages_of_the_page_size", "v has one head fewer than k", uneven_verify(),
                [](UnifiedCall& c) { c.v.shape[2] = 1; });
  calls.mla("cache.has_pages_of_the_page_size", "page_size is the pool's over a flat buffer",
            mla_verify(), [](MlaDecodeCall& c) { c.page_size = 16; });
}

void break_tensors(BrokenCalls& calls) {
  break_heads(calls);
  break_sizes(calls);
  break_layout(calls);
  break_dtypes(calls);
}

}  // namespace attest
