#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

using Legacy = LegacyExtendCall;

Problem verify() { return sample_problem(Mode::target_verify, {{18, 3}, {5, 2}}); }

Problem windowed() {
  Problem p = verify();
  p.model.window = 8;
  return p;
}

void break_legacy_shapes(BrokenCalls& calls) {
  calls.legacy("tensors.have_their_rank", "the pool has a page dimension", verify(),
               [](Legacy& c) { c.k_buffer = contiguous(Dtype::bf16, {4, 16, 2, 32}); });
  calls.legacy("query_offsets.have_one_entry_more_than_requests", "kv_indptr lacks its last entry",
               verify(), [](Legacy& c) { c.kv_indptr = int_array(Dtype::int32, {0, 18}); });
  calls.legacy("cache.has_pages_of_the_page_size", "v_buffer has one head fewer", verify(),
               [](Legacy& c) { c.v_buffer.shape[1] = 1; });
  calls.legacy("q.holds_every_new_token", "q_extend is of a smaller batch", verify(),
               [](Legacy& c) { c.q_extend = contiguous(Dtype::bf16, {4, 4, 32}); });
  calls.legacy("k_extend.holds_every_new_token", "k_extend is of a smaller batch", verify(),
               [](Legacy& c) { c.k_extend = contiguous(Dtype::bf16, {4, 2, 32}); });
  calls.legacy("out.holds_every_row", "the output is of a smaller batch", verify(),
               [](Legacy& c) { c.o_extend = contiguous(Dtype::bf16, {4, 4, 32}); });
  calls.legacy("out.rows_do_not_overlap", "rows of the output are one head apart", verify(),
               [](Legacy& c) { c.o_extend.strides = {32, 32, 1}; });
  calls.legacy("head_dim.is_the_layers", "q_extend has half of every head", verify(),
               [](Legacy& c) { c.q_extend = contiguous(Dtype::bf16, {5, 4, 16}); });
  calls.legacy("layout.last_dimension_is_dense", "q_extend's last dimension is strided", verify(),
               [](Legacy& c) { c.q_extend.strides = {256, 64, 2}; });
  calls.legacy("layout.cache_is_the_pool", "slots are taken for twice as wide", verify(),
               [](Legacy& c) { c.k_buffer.strides[0] *= 2; });
  calls.legacy("heads.divide_evenly", "three q heads over two kv heads", verify(),
               [](Legacy& c) { c.q_extend = contiguous(Dtype::bf16, {5, 3, 32}); });
  calls.legacy("heads.are_the_layers", "the q heads of one rank of two", verify(),
               [](Legacy& c) { c.q_extend = contiguous(Dtype::bf16, {5, 2, 32}); });
  calls.legacy("dtypes.are_the_layers", "the bf16 layer is called in fp16", verify(),
               [](Legacy& c) { c.q_extend.dtype = Dtype::f16; });
  calls.legacy("dtypes.index_arrays_are_dense", "kv_indptr is every other entry of an array",
               verify(), [](Legacy& c) { c.kv_indptr.meta.strides = {2}; });
}

void break_legacy_offsets(BrokenCalls& calls) {
  calls.legacy("query_offsets.start_at_zero", "the offsets begin at 1", verify(),
               [](Legacy& c) { c.qo_indptr.values[0] = 1; });
  calls.legacy("query_offsets.never_decrease", "an offset is smaller than the one before", verify(),
               [](Legacy& c) { c.qo_indptr.values = {0, 9, 5}; });
  calls.legacy("query_offsets.end_at_the_last_row", "the start-up draft count spaces the offsets",
               verify(), [](Legacy& c) { c.qo_indptr.values = {0, 3, 8}; });
  calls.legacy("query_offsets.follow_the_real_lengths", "one request has the other one's row",
               verify(), [](Legacy& c) { c.qo_indptr.values = {0, 2, 5}; });
  calls.legacy("max_seqlen_q.is_the_longest_request", "max_len_extend was never set", verify(),
               [](Legacy& c) { c.max_len_extend = 0; });
  calls.legacy("kv_indptr.never_decreases", "an offset is smaller than the one before", verify(),
               [](Legacy& c) { c.kv_indptr.values = {0, 18, 17}; });
  calls.legacy("kv_indptr.stays_inside_kv_indices", "the offsets count far more keys", verify(),
               [](Legacy& c) { c.kv_indptr.values = {0, 18, 900}; });
  calls.legacy("kv_indptr.counts_this_steps_tokens", "the drafts are counted with the prefix",
               verify(), [](Legacy& c) { c.kv_indptr.values = {0, 21, 23}; });
  calls.legacy("kv_indices.name_existing_pages", "a slot of another pool", verify(),
               [](Legacy& c) { c.kv_indices.values[3] = c.k_buffer.shape[0]; });
  calls.legacy("kv_indices.name_the_requests_slots", "the entries are shifted by one token",
               verify(), [](Legacy& c) {
                 auto& slots = c.kv_indices.values;
                 slots.insert(slots.begin(), slots.front());
                 slots.pop_back();
               });
}

void break_legacy_mask(BrokenCalls& calls) {
  calls.legacy("mask_indptr.starts_where_the_rows_are", "the starts are not passed", verify(),
               [](Legacy& c) { c.mask_indptr.reset(); });
  Problem padded = sample_problem(Mode::target_verify, {{20, 2}, {0, 1}, {0, 1}});
  padded.requests[0].tree_parent = {-1, -1};
  padded.requests[1].live = padded.requests[2].live = false;
  calls.legacy("mask_indptr.starts_where_the_rows_are", "a padded row takes the next one's row too",
               padded, [](Legacy& c) { c.qo_indptr.values[2] = c.qo_indptr.values[3]; });
  calls.legacy("mask_indptr.follows_the_lengths", "the start-up draft count spaces the mask",
               verify(), [](Legacy& c) { c.mask_indptr->values = {0, 56, 70}; });
  calls.legacy("custom_mask.has_one_byte_an_entry", "the mask is int64", verify(),
               [](Legacy& c) { c.custom_mask->meta.dtype = Dtype::int64; });
  calls.legacy("custom_mask.is_the_draft_tree", "a token does not see itself", verify(),
               [](Legacy& c) { c.custom_mask->values[18] = 0; });
  Problem tree = verify();
  tree.topk = 2;
  tree.requests[0].tree_parent = {-1, 0, 0};
  calls.legacy("custom_mask.is_given_for_trees", "a draft tree without its mask", tree,
               [](Legacy& c) { c.custom_mask.reset(), c.mask_indptr.reset(); });
}

void break_legacy_memory(BrokenCalls& calls) {
  calls.legacy("tensor.lies_inside_its_storage", "k_extend lies in the storage of one element",
               verify(), [](Legacy& c) { c.k_extend.storage_bytes = 2; });
  calls.legacy("tensor.rows_do_not_overlap", "one query head is expanded to all", verify(),
               [](Legacy& c) { c.q_extend.strides[1] = 0; });
  calls.legacy("tensor.has_memory_of_its_own", "k_extend is passed as v_extend", verify(),
               [](Legacy& c) { c.k_extend.storage = c.v_extend.storage = "new_k"; });
  calls.legacy("out.overlaps_no_input", "o_extend is q_extend", verify(),
               [](Legacy& c) { c.o_extend.storage = c.q_extend.storage = "rows"; });
  Problem sinks = verify();
  sinks.model.sinks = true;
  calls.legacy("sinks.are_dense", "one sink is expanded to all heads", sinks,
               [](Legacy& c) { c.sinks->strides = {0}; });
}

void break_legacy_features(BrokenCalls& calls) {
  Problem own_scale = verify();
  own_scale.model.softmax_scale = 0.08125;
  calls.legacy("softmax_scale.is_the_layers", "no scale is passed to a layer with one of its own",
               own_scale, [](Legacy& c) { c.sm_scale.reset(); });
  calls.legacy("softcap.is_the_layers", "a cap for a layer without one", verify(),
               [](Legacy& c) { c.logit_cap = 30; });
  calls.legacy("window.is_the_layers", "the window is one key short", windowed(),
               [](Legacy& c) { c.sliding_window_size = 6; });
  calls.legacy("sinks.are_the_layers", "sinks for a layer without them", verify(),
               [](Legacy& c) { c.sinks = contiguous(Dtype::bf16, {4}); });
  calls.legacy("descales.are_the_layers", "a factor over a bf16 pool", verify(),
               [](Legacy& c) { c.k_scale = 0.5; });
}

}  // namespace

void break_legacy(BrokenCalls& calls) {
  break_legacy_shapes(calls);
  break_legacy_offsets(calls);
  break_legacy_mask(calls);
  break_legacy_memory(calls);
  break_legacy_features(calls);
}

}  // namespace attest
