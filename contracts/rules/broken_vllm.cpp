#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

using Vllm = VllmCpuCall;

Problem windowed() {
  Problem p = uneven_verify();
  p.model.window = 8;
  return p;
}

Problem with_sinks() {
  Problem p = uneven_verify();
  p.model.sinks = true;
  return p;
}

Problem in_blocks_of_32() {
  Problem p = uneven_verify();
  p.pool.page_size = 32;
  return p;
}

Problem padded() {
  Problem p = uneven_verify();
  p.path = Path::replay;
  p.requests.back().live = false;
  return p;
}

void narrow_the_table(Vllm& c) {
  c.block_table =
      int_matrix(Dtype::int32, 2, 1, {c.block_table.values[0], c.block_table.values[3]});
}

void break_shapes_of_vllm(BrokenCalls& calls) {
  calls.vllm("tensor.sizes_are_sane", "seq_lens lacks a value", uneven_verify(),
             [](Vllm& c) { c.seq_lens.values.pop_back(); });
  calls.vllm("tensors.have_their_rank", "the cache is K and V in one tensor", uneven_verify(),
             [](Vllm& c) { c.key_cache = contiguous(Dtype::bf16, {2, 7, 2, 16, 32}); });
  calls.vllm("query_offsets.have_one_entry_more_than_requests", "the offsets lack the last one",
             uneven_verify(), [](Vllm& c) { c.query_start_loc = int_array(Dtype::int32, {0, 3}); });
  calls.vllm("seqused_k.has_one_entry_per_request", "one length for two requests", uneven_verify(),
             [](Vllm& c) { c.seq_lens = int_array(Dtype::int32, {38}); });
  calls.vllm("block_table.has_a_row_per_request", "the table is of a batch of one", uneven_verify(),
             [](Vllm& c) { c.block_table = int_matrix(Dtype::int32, 1, 3, {4, 1, 6}); });
  calls.vllm("cache.has_pages_of_the_page_size", "value_cache has one head fewer", uneven_verify(),
             [](Vllm& c) { c.value_cache.shape[1] = 1; });
  calls.vllm("q.holds_every_new_token", "the query is of a smaller batch", uneven_verify(),
             [](Vllm& c) { c.query = contiguous(Dtype::bf16, {4, 4, 32}); });
  calls.vllm("out.holds_every_row", "the output is of a smaller batch", uneven_verify(),
             [](Vllm& c) { c.output = contiguous(Dtype::bf16, {4, 4, 32}); });
  calls.vllm("out.rows_do_not_overlap", "rows of the output are one head apart", uneven_verify(),
             [](Vllm& c) { c.output.strides = {32, 32, 1}; });
  calls.vllm("output.is_contiguous", "the output is a view of (heads, tokens, dim)",
             uneven_verify(), [](Vllm& c) { c.output.strides = {32, 160, 1}; });
  calls.vllm("head_dim.is_the_layers", "the query has half of every head", uneven_verify(),
             [](Vllm& c) { c.query = contiguous(Dtype::bf16, {5, 4, 16}); });
  calls.vllm("layout.last_dimension_is_dense", "the query's last dimension is strided",
             uneven_verify(), [](Vllm& c) { c.query.strides = {256, 64, 2}; });
  calls.vllm("heads.divide_evenly", "three q heads over two kv heads", uneven_verify(),
             [](Vllm& c) { c.query = contiguous(Dtype::bf16, {5, 3, 32}); });
  calls.vllm("heads.are_the_layers", "the q heads of one rank of two", uneven_verify(),
             [](Vllm& c) { c.query = contiguous(Dtype::bf16, {5, 2, 32}); });
}

void break_offsets_of_vllm(BrokenCalls& calls) {
  calls.vllm("query_offsets.start_at_zero", "the offsets begin at 1", uneven_verify(),
             [](Vllm& c) { c.query_start_loc.values[0] = 1; });
  calls.vllm("query_offsets.never_decrease", "an offset is smaller than the one before",
             uneven_verify(), [](Vllm& c) { c.query_start_loc.values = {0, 9, 5}; });
  calls.vllm("query_offsets.end_at_the_last_row", "the start-up draft count spaces the offsets",
             uneven_verify(), [](Vllm& c) { c.query_start_loc.values = {0, 3, 8}; });
  calls.vllm("query_offsets.follow_the_real_lengths", "one request has the other one's row",
             uneven_verify(), [](Vllm& c) { c.query_start_loc.values = {0, 2, 5}; });
  calls.vllm("seqused_k.counts_this_steps_tokens", "the committed lengths, without the drafts",
             uneven_verify(), [](Vllm& c) { c.seq_lens.values = {35, 9}; });
  calls.vllm("padding.rows_have_keys", "the padded request has no keys", padded(),
             [](Vllm& c) { c.seq_lens.values[1] = 0; });
  calls.vllm("padding.rows_have_the_modes_length",
             "the padded request kept a length of the batch before", padded(),
             [](Vllm& c) { c.seq_lens.values[1] = 30; });
  calls.vllm("padding.q_ends_with_the_offsets", "the query is padded, the offsets are not",
             uneven_verify(), [](Vllm& c) {
               c.query = contiguous(Dtype::bf16, {8, 4, 32});
               c.output = c.query;
             });
}

void break_table_of_vllm(BrokenCalls& calls) {
  calls.vllm("block_table.is_wide_enough", "the newest pages have no column", uneven_verify(),
             narrow_the_table);
  calls.vllm("block_table.names_existing_pages", "a page id of a larger pool", uneven_verify(),
             [](Vllm& c) { c.block_table.values[1] = c.key_cache.shape[0]; });
  calls.vllm("block_table.names_the_requests_pages",
             "the table of the first request was never filled", uneven_verify(), [](Vllm& c) {
               for (std::size_t j = 0; j < 3; ++j) c.block_table.values[j] = 0;
             });
  calls.vllm("block_table.rows_do_not_overlap", "one row is expanded to all requests",
             uneven_verify(), [](Vllm& c) { c.block_table.meta.strides[0] = 0; });
  calls.unsaid("block_table.keeps_pages_together",
               "the last slots were handed out singly, a table names whole pages",
               slots_scattered(), slots_together(), nullptr, Signature::vllm_cpu);
  calls.vllm("block_table.gives_each_request_its_own_new_slots", "two requests draft into one page",
             sample_problem(Mode::target_verify, {{4, 2}, {4, 2}}),
             [](Vllm& c) { c.block_table.values[1] = c.block_table.values[0]; });
  Problem shared = sample_problem(Mode::target_verify, {{16, 3}, {16, 2}});
  shared.pool.num_pages = 8;
  shared.pool.slots = {{{16, 16}, {96, 3}}, {{32, 16}, {96, 2}}};
  calls.unsaid("new_tokens.have_slots_of_their_own", "two requests' drafts get the same slots",
               shared, shared, nullptr, Signature::vllm_cpu);
}

void break_memory_of_vllm(BrokenCalls& calls) {
  calls.vllm("tensor.lies_inside_its_storage", "the query lies in a storage of one element",
             uneven_verify(), [](Vllm& c) { c.query.storage_bytes = 2; });
  calls.vllm("tensor.rows_do_not_overlap", "one query row is expanded to all", uneven_verify(),
             [](Vllm& c) { c.query.strides[0] = 0; });
  calls.vllm("tensor.has_memory_of_its_own", "the key cache is passed as the value cache",
             uneven_verify(),
             [](Vllm& c) { c.key_cache.storage = c.value_cache.storage = "kv_cache"; });
  calls.vllm("out.overlaps_no_input", "the output is the query", uneven_verify(),
             [](Vllm& c) { c.output.storage = c.query.storage = "rows"; });
  calls.vllm("sinks.are_dense", "every other sink", with_sinks(),
             [](Vllm& c) { c.s_aux->strides = {2}; });
}

void break_cache_of_vllm(BrokenCalls& calls) {
  calls.vllm("layout.cache_is_the_pool", "blocks are taken for twice as large", uneven_verify(),
             [](Vllm& c) { c.key_cache.strides[0] *= 2, c.value_cache.strides[0] *= 2; });
  calls.vllm("cache.blocks_are_dense", "a cache with tokens before heads", uneven_verify(),
             [](Vllm& c) { c.key_cache.strides = {1024, 32, 64, 1}; });
  calls.vllm("cache.v_has_ks_strides", "V's blocks lie further apart than K's", uneven_verify(),
             [](Vllm& c) { c.value_cache.strides[0] *= 2; });
  calls.vllm("cache.blocks_fit_the_form", "blocks of 16 for the form that takes 32",
             uneven_verify(), [](Vllm& c) { c.isa = "amx"; });
  calls.vllm(
      "isa.fits_the_layer", "amx for an fp16 layer",
      [] {
        Problem p = in_blocks_of_32();
        p.model.q_dtype = p.model.kv_dtype = p.model.out_dtype = Dtype::f16;
        return p;
      }(),
      [](Vllm& c) { c.isa = "amx"; });
  calls.vllm("head_dim.fits_the_cpu_kernels", "heads of 48", uneven_verify(),
             [](Vllm& c) { c.query = contiguous(Dtype::bf16, {5, 4, 48}); });
  calls.vllm("dtypes.are_the_layers", "the bf16 layer is called in fp16", uneven_verify(),
             [](Vllm& c) { c.query.dtype = Dtype::f16; });
  calls.vllm("dtypes.cache_and_output_are_qs", "an fp16 cache under a bf16 query", uneven_verify(),
             [](Vllm& c) { c.value_cache.dtype = Dtype::f16; });
  calls.vllm("kv_cache_dtype.is_auto", "the word of an fp8 cache", uneven_verify(),
             [](Vllm& c) { c.kv_cache_dtype = "fp8"; });
  calls.vllm("dtypes.index_arrays_are_int32", "int64 lengths, as every other kernel takes them",
             uneven_verify(), [](Vllm& c) { c.seq_lens.meta.dtype = Dtype::int64; });
  calls.vllm("dtypes.index_arrays_are_dense", "the offsets are every other entry of an array",
             uneven_verify(), [](Vllm& c) { c.query_start_loc.meta.strides = {2}; });
}

void break_features_of_vllm(BrokenCalls& calls) {
  Problem own_scale = uneven_verify();
  own_scale.model.softmax_scale = 0.08125;
  calls.vllm("softmax_scale.is_the_layers", "1 / sqrt(head size) for a layer with its own scale",
             own_scale, [](Vllm& c) { c.scale = 0.17678; });
  calls.vllm("softcap.is_the_layers", "a cap for a layer without one", uneven_verify(),
             [](Vllm& c) { c.softcap = 30; });
  calls.vllm("causal.is_set", "every draft sees every other", uneven_verify(),
             [](Vllm& c) { c.causal = false; });
  calls.vllm("window.is_the_layers", "the largest distance for the number of keys", windowed(),
             [](Vllm& c) { c.sliding_window = 7; });
  calls.vllm("sinks.are_the_layers", "fp16 sinks", with_sinks(),
             [](Vllm& c) { c.s_aux->dtype = Dtype::f16; });
  const auto unsaid = [&](std::string_view rule, std::string_view story, auto change) {
    Problem wanted = uneven_verify();
    change(wanted);
    calls.unsaid(rule, story, wanted, uneven_verify(), nullptr, Signature::vllm_cpu);
  };
  unsaid("draft_tree.is_a_chain", "a tree of two branches in causal order",
         [](Problem& p) { p.requests[0].tree_parent = {-1, 0, 0}; });
  unsaid("descales.are_the_layers", "K of the bf16 cache counts half",
         [](Problem& p) { p.model.k_descale = 0.5; });
  unsaid("cross_attention.has_a_kernel", "text behind an encoder's tokens",
         [](Problem& p) { p.requests[0].encoder_tokens = 7; });
}

}  // namespace

void break_vllm(BrokenCalls& calls) {
  break_shapes_of_vllm(calls);
  break_offsets_of_vllm(calls);
  break_table_of_vllm(calls);
  break_memory_of_vllm(calls);
  break_cache_of_vllm(calls);
  break_features_of_vllm(calls);
}

}  // namespace attest
