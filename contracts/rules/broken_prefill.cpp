#include "contracts/rules/broken_parts.hpp"

namespace attest {
namespace {

Problem prefill() { return sample_problem(Mode::draft_extend_v2, {{18, 3}, {5, 2}}); }

Problem windowed() {
  Problem p = prefill();
  p.model.window = 8;
  return p;
}

Problem padded() {
  Problem p = prefill();
  p.path = Path::replay;
  p.requests.back().live = false;
  return p;
}

void break_prefill_shapes(BrokenCalls& calls) {
  calls.prefill(
      "tensors.have_their_rank", "the cache has a page dimension", prefill(),
      [](BatchPrefillCall& c) { c.k = contiguous(c.k.dtype, {c.k.shape[0] / 16, 16, 2, 32}); });
  calls.prefill("query_offsets.have_one_entry_more_than_requests", "kv_indptr lacks its last entry",
                prefill(),
                [](BatchPrefillCall& c) { c.kv_indptr = int_array(Dtype::int32, {0, 21}); });
  calls.prefill("cache.has_pages_of_the_page_size", "v has one head fewer than k", prefill(),
                [](BatchPrefillCall& c) { c.v.shape[1] = 1; });
  calls.prefill("q.holds_every_new_token", "q is of a smaller batch", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {4, 4, 32}); });
  calls.prefill("head_dim.is_the_layers", "q has half of every head", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {5, 4, 16}); });
  calls.prefill("head_dim.fits_the_prefill_kernels", "heads of 36 elements", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {5, 4, 36}); });
  calls.prefill("layout.last_dimension_is_dense", "q's last dimension is strided", prefill(),
                [](BatchPrefillCall& c) { c.q.strides = {256, 64, 2}; });
  calls.prefill("layout.cache_is_the_pool", "slots are taken for twice as wide", prefill(),
                [](BatchPrefillCall& c) { c.k.strides[0] *= 2; });
  calls.prefill("heads.divide_evenly", "three q heads over two kv heads", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {5, 3, 32}); });
  calls.prefill("heads.are_the_layers", "the q heads of one rank of two", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {5, 2, 32}); });
}

void break_prefill_dtypes(BrokenCalls& calls) {
  calls.prefill("dtypes.are_the_layers", "the bf16 layer is called in fp16", prefill(),
                [](BatchPrefillCall& c) { c.q.dtype = c.k.dtype = c.v.dtype = Dtype::f16; });
  calls.prefill("dtypes.q_k_and_v_are_one", "a bf16 q over an fp8 cache", prefill(),
                [](BatchPrefillCall& c) { c.k.dtype = c.v.dtype = Dtype::fp8_e4m3fn; });
  calls.prefill("dtypes.index_arrays_are_int32", "the slots are int64", prefill(),
                [](BatchPrefillCall& c) { c.kv_page_indices.meta.dtype = Dtype::int64; });
  calls.prefill("dtypes.index_arrays_are_dense", "kv_indptr is every other entry of an array",
                prefill(), [](BatchPrefillCall& c) { c.kv_indptr.meta.strides = {2}; });
}

void break_prefill_offsets(BrokenCalls& calls) {
  calls.prefill("query_offsets.start_at_zero", "the offsets begin at 1", prefill(),
                [](BatchPrefillCall& c) { c.cu_seqlens_q.values[0] = 1; });
  calls.prefill("query_offsets.never_decrease", "the prompt's offsets, then a smaller one",
                prefill(), [](BatchPrefillCall& c) { c.cu_seqlens_q.values = {0, 9, 5}; });
  calls.prefill("query_offsets.end_at_the_last_row", "the offsets of the preceding prompt",
                prefill(), [](BatchPrefillCall& c) { c.cu_seqlens_q.values = {0, 3, 80}; });
  calls.prefill("query_offsets.follow_the_real_lengths", "one request has the other one's row",
                prefill(), [](BatchPrefillCall& c) { c.cu_seqlens_q.values = {0, 2, 5}; });
  calls.prefill("max_seqlen_q.is_the_longest_request", "max_seqlen_q was never set", prefill(),
                [](BatchPrefillCall& c) { c.max_seqlen_q = 0; });
  calls.prefill("padding.q_ends_with_the_offsets", "q is padded by two rows", prefill(),
                [](BatchPrefillCall& c) { c.q = contiguous(c.q.dtype, {7, 4, 32}); });
}

void break_prefill_keys(BrokenCalls& calls) {
  calls.prefill("max_seqlen_k.covers_the_longest_request", "max_seqlen_k was never set", prefill(),
                [](BatchPrefillCall& c) { c.max_seqlen_k = 0; });
  calls.prefill("max_seqlen_k.covers_the_longest_request",
                "max_seqlen_k is frozen at the draft length, and the window with it is lost",
                windowed(), [](BatchPrefillCall& c) { c.max_seqlen_k = 3; });
  calls.prefill("kv_indptr.never_decreases", "an offset is smaller than the one before", prefill(),
                [](BatchPrefillCall& c) { c.kv_indptr.values = {0, 28, 27}; });
  calls.prefill("kv_indptr.stays_inside_kv_indices", "the offsets count far more keys", prefill(),
                [](BatchPrefillCall& c) { c.kv_indptr.values = {0, 21, 900}; });
  calls.prefill("kv_indptr.counts_this_steps_tokens", "the lengths are the committed ones",
                prefill(), [](BatchPrefillCall& c) { c.kv_indptr.values = {0, 18, 23}; });
  calls.prefill("kv_indices.name_existing_pages", "a slot of another pool", prefill(),
                [](BatchPrefillCall& c) { c.kv_page_indices.values[3] = c.k.shape[0]; });
  calls.prefill("kv_indices.name_the_requests_slots", "the entries are shifted by one token",
                prefill(), [](BatchPrefillCall& c) {
                  auto& slots = c.kv_page_indices.values;
                  slots.insert(slots.begin(), slots.front());
                  slots.pop_back();
                });
  calls.prefill(
      "kv_indices.give_each_request_its_own_new_slots", "two requests share a new slot", prefill(),
      [](BatchPrefillCall& c) { c.kv_page_indices.values[21 + 5] = c.kv_page_indices.values[18]; });
  calls.prefill("kv_page_indices.reach_past_the_last_token", "the array ends with the last key",
                prefill(), [](BatchPrefillCall& c) {
                  c.kv_page_indices.values.resize(28);
                  c.kv_page_indices = int_array(Dtype::int32, c.kv_page_indices.values);
                });
  calls.prefill("padding.rows_have_keys", "the padded request has no keys", padded(),
                [](BatchPrefillCall& c) { c.kv_indptr.values[2] = 21; });
  calls.prefill("padding.rows_have_the_modes_length",
                "the padded request kept a length of the batch before", padded(),
                [](BatchPrefillCall& c) { c.kv_indptr.values[2] = 26; });
}

void break_prefill_features(BrokenCalls& calls) {
  Problem own_scale = prefill();
  own_scale.model.softmax_scale = 0.08125;
  calls.prefill("softmax_scale.is_the_layers", "no scale is passed to a layer with one of its own",
                own_scale, [](BatchPrefillCall& c) { c.softmax_scale.reset(); });
  calls.prefill("softcap.is_the_layers", "a cap for a layer without one", prefill(),
                [](BatchPrefillCall& c) { c.logits_soft_cap = 30; });
  calls.prefill("causal.is_set", "causal is left at its default", prefill(),
                [](BatchPrefillCall& c) { c.causal = false; });
  calls.prefill("window.is_the_layers", "the window is one key short", windowed(),
                [](BatchPrefillCall& c) { c.window_size = {6, -1}; });
  calls.prefill("sinks.are_the_layers", "sinks for a layer without them", prefill(),
                [](BatchPrefillCall& c) { c.sink_ptr = contiguous(Dtype::f32, {4}); });
  calls.prefill("descales.come_together", "a lone k_descale", prefill(),
                [](BatchPrefillCall& c) { c.k_descale = contiguous(Dtype::f32, {1}); });
  Problem fp8 = prefill();
  fp8.model.q_dtype = fp8.model.kv_dtype = Dtype::fp8_e4m3fn;
  fp8.model.q_descale = fp8.model.k_descale = fp8.model.v_descale = 0.5;
  calls.prefill("descales.are_the_layers", "one descale per head", fp8,
                [](BatchPrefillCall& c) { c.k_descale = contiguous(Dtype::f32, {2}); });
  Problem tree = prefill();
  tree.mode = Mode::target_verify;
  Problem chain = tree;
  tree.requests[0].tree_parent = {-1, 0, 0};
  calls.unsaid("draft_tree.is_a_chain", "siblings in causal order", tree, chain, nullptr,
               Signature::batch_prefill);
  // No argument is wrong: the kernel is.
  const Problem long_context = sample_problem(Mode::draft_extend_v2, {{4092, 4}});
  calls.unsaid("launch.splits_a_long_context", "draft extend over 4096 keys", long_context,
               long_context, nullptr, Signature::batch_prefill);
}

}  // namespace

void break_prefill(BrokenCalls& calls) {
  break_prefill_shapes(calls);
  break_prefill_dtypes(calls);
  break_prefill_offsets(calls);
  break_prefill_keys(calls);
  break_prefill_features(calls);
}

}  // namespace attest
