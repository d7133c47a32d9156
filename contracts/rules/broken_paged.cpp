#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

using Ragged = PagedRaggedCall;

Problem step() {
  Problem p = sample_problem(Mode::decode, {{18, 1}, {5, 1}});
  p.model.head_dim = p.model.v_head_dim = 64;
  return p;
}

Problem long_step() {
  Problem p = step();
  p.requests[0].committed = 299;
  fit_pool(p);
  return p;
}

Problem padded() {
  Problem p = step();
  p.path = Path::replay;
  p.requests.back().live = false;
  return p;
}

void break_shapes_of_it(BrokenCalls& calls) {
  calls.ragged("tensors.have_their_rank", "the cache has no page dimension", step(),
               [](Ragged& c) { c.key_cache = contiguous(Dtype::bf16, {64, 2, 64}); });
  calls.ragged("query_offsets.have_one_entry_more_than_requests", "kv_indptr lacks its last entry",
               step(), [](Ragged& c) { c.kv_indptr = int_array(Dtype::int32, {0, 19}); });
  calls.ragged("seqused_k.has_one_entry_per_request", "one last page length for two requests",
               step(), [](Ragged& c) { c.kv_last_page_lens = int_array(Dtype::int32, {1}); });
  calls.ragged("cache.has_pages_of_the_page_size", "block_size is the server's page size", step(),
               [](Ragged& c) { c.block_size = 16; });
  calls.ragged("q.holds_every_new_token", "the query is of a smaller batch", step(),
               [](Ragged& c) { c.query = contiguous(Dtype::bf16, {1, 4, 64}); });
  calls.ragged("out.holds_every_row", "the output is of a smaller batch", step(),
               [](Ragged& c) { c.out = contiguous(Dtype::bf16, {1, 4, 64}); });
  calls.ragged("out.rows_do_not_overlap", "rows of the output are one head apart", step(),
               [](Ragged& c) { c.out.strides = {64, 64, 1}; });
  calls.ragged("head_dim.is_the_layers", "the query has half of every head", step(),
               [](Ragged& c) { c.query = contiguous(Dtype::bf16, {2, 4, 32}); });
  calls.ragged("head_dim.fits_the_paged_kernels", "heads of 32 elements", step(),
               [](Ragged& c) { c.query = contiguous(Dtype::bf16, {2, 4, 32}); });
  calls.ragged("layout.last_dimension_is_dense", "the query's last dimension is strided", step(),
               [](Ragged& c) { c.query.strides = {512, 128, 2}; });
  calls.ragged("layout.cache_is_the_pool", "slots are taken for twice as wide", step(),
               [](Ragged& c) { c.key_cache.strides[0] *= 2; });
  calls.ragged("heads.divide_evenly", "three q heads over two kv heads", step(),
               [](Ragged& c) { c.query = contiguous(Dtype::bf16, {2, 3, 64}); });
  calls.ragged("heads.are_the_layers", "the q heads of one rank of two", step(),
               [](Ragged& c) { c.query = contiguous(Dtype::bf16, {2, 2, 64}); });
  calls.ragged("dtypes.are_the_layers", "the bf16 layer is called in fp16", step(),
               [](Ragged& c) { c.query.dtype = c.out.dtype = Dtype::f16; });
  calls.ragged("dtypes.index_arrays_are_int32", "kv_indptr is int64", step(),
               [](Ragged& c) { c.kv_indptr.meta.dtype = Dtype::int64; });
  calls.ragged("dtypes.index_arrays_are_dense", "kv_indptr is every other entry of an array",
               step(), [](Ragged& c) { c.kv_indptr.meta.strides = {2}; });
}

void break_keys_of_it(BrokenCalls& calls) {
  calls.ragged("kv_indptr.never_decreases", "an offset is smaller than the one before", step(),
               [](Ragged& c) { c.kv_indptr.values = {0, 19, 18}; });
  calls.ragged("kv_indptr.stays_inside_kv_indices", "the offsets count far more keys", step(),
               [](Ragged& c) { c.kv_indptr.values = {0, 19, 900}; });
  calls.ragged("kv_indptr.counts_this_steps_tokens", "the token just stored is not counted", step(),
               [](Ragged& c) { c.kv_indptr.values = {0, 18, 23}; });
  calls.ragged("kv_last_page_lens.fits_the_page", "a sequence length for the last page's", step(),
               [](Ragged& c) { c.kv_last_page_lens.values = {19, 1}; });
  calls.ragged("kv_indices.name_existing_pages", "a slot of another pool", step(),
               [](Ragged& c) { c.kv_page_indices.values[3] = c.key_cache.shape[0]; });
  calls.ragged("kv_indices.name_the_requests_slots", "two entries are swapped with a stale one",
               step(),
               [](Ragged& c) { c.kv_page_indices.values[4] = c.kv_page_indices.values[20]; });
  calls.ragged("kv_indices.give_each_request_its_own_new_slots", "two requests share a new slot",
               step(),
               [](Ragged& c) { c.kv_page_indices.values[24] = c.kv_page_indices.values[18]; });
  calls.ragged("max_num_partitions.cover_the_longest_request", "the partitions of a shorter batch",
               long_step(), [](Ragged& c) { c.max_num_partitions = 1; });
  calls.ragged("workspace_buffer.holds_every_partition", "scratch memory for one row of two",
               long_step(), [](Ragged& c) { c.workspace_buffer.shape[0] /= 4; });
  calls.ragged("padding.rows_have_keys", "the padded request has no keys", padded(),
               [](Ragged& c) { c.kv_indptr.values[2] = 19; });
  calls.ragged("padding.rows_have_the_modes_length",
               "the padded request kept a length of the batch before", padded(),
               [](Ragged& c) { c.kv_indptr.values[2] = 22; });
  calls.ragged("query.is_one_row_a_request", "the query is padded, kv_indptr is not", step(),
               [](Ragged& c) {
                 c.query = contiguous(Dtype::bf16, {4, 4, 64});
                 c.out = c.query;
               });
}

void break_memory_of_it(BrokenCalls& calls) {
  calls.ragged("tensor.lies_inside_its_storage", "the key cache begins past its storage", step(),
               [](Ragged& c) { c.key_cache.storage_offset = std::int64_t{1} << 31; });
  calls.ragged("tensor.rows_do_not_overlap", "one query row is expanded to all", step(),
               [](Ragged& c) { c.query.strides[0] = 0; });
  calls.ragged("tensor.has_memory_of_its_own", "the key cache is passed as the value cache", step(),
               [](Ragged& c) { c.key_cache.storage = c.value_cache.storage = "k_pool"; });
  calls.ragged("out.overlaps_no_input", "the scratch memory lies over the query", step(),
               [](Ragged& c) { c.workspace_buffer.storage = c.query.storage = "rows"; });
}

void break_features_of_it(BrokenCalls& calls) {
  Problem own_scale = step();
  own_scale.model.softmax_scale = 0.08125;
  calls.ragged("softmax_scale.is_the_layers", "1 / sqrt(head size) for a layer with its own scale",
               own_scale, [](Ragged& c) { c.scale = 0.125; });
  calls.ragged("softcap.is_the_layers", "a cap for a layer without one", step(),
               [](Ragged& c) { c.logits_soft_cap = 30; });
  calls.ragged("mtp.is_one", "two rows a request", step(), [](Ragged& c) { c.mtp = 2; });
  calls.ragged("kv_cache_layout.is_the_pools", "the word of the other layout", step(),
               [](Ragged& c) { c.kv_cache_layout = "HND"; });
  calls.ragged("kv_cache_dtype.is_the_caches", "a bf16 cache is read as fp8", step(),
               [](Ragged& c) { c.kv_cache_dtype = "fp8"; });
  Problem fp8 = step();
  fp8.model.kv_dtype = Dtype::fp8_e4m3fn;
  fp8.model.k_descale = fp8.model.v_descale = 0.5;
  calls.ragged("descales.are_the_layers", "k_scale is not passed", fp8,
               [](Ragged& c) { c.k_scale.reset(); });
  const auto unsaid = [&](std::string_view rule, std::string_view story, auto change) {
    Problem wanted = step();
    change(wanted);
    calls.unsaid(rule, story, wanted, step(), nullptr, Signature::paged_ragged);
  };
  unsaid("window.is_the_layers", "a windowed layer on a kernel without windows",
         [](Problem& p) { p.model.window = 8; });
  unsaid("sinks.are_the_layers", "a layer with sinks on a kernel without them",
         [](Problem& p) { p.model.sinks = true; });
}

}  // namespace

void break_paged(BrokenCalls& calls) {
  break_shapes_of_it(calls);
  break_keys_of_it(calls);
  break_memory_of_it(calls);
  break_features_of_it(calls);
}

}  // namespace attest
