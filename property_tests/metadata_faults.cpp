#include "property_tests/metadata_faults.hpp"

#include <array>
#include <vector>

#include "property_tests/fault_edits.hpp"
#include "property_tests/signature_sets.hpp"

namespace attest {
namespace {

using enum Signature;
using namespace signature_sets;

constexpr std::array faults = {
    // Lengths
    MetadataFault{"seqused_k_int32", "seqused_k is int32 where every other call site passes int64",
                  "sgl-project/sglang#36541", seqused_k_int32, "seqused_k", "an int64 array",
                  of({unified})},
    MetadataFault{"seqused_k_short_by_one", "seqused_k leaves out the newest key",
                  "sgl-project/sglang#26512", seqused_k_short_by_one, "seqused_k", "a live request",
                  of({unified})},
    MetadataFault{"seqused_k_long_by_one", "seqused_k counts one key that was never written",
                  "vllm-project/vllm-ascend#14883", seqused_k_long_by_one, "seqused_k",
                  "a live request", of({unified})},
    MetadataFault{"seqused_k_from_max_seqlen_q",
                  "seqused_k is committed + the longest request's new tokens, for every request",
                  "sgl-project/sglang#31221", seqused_k_from_max_seqlen_q, "seqused_k",
                  "a target_verify step whose live requests differ in drafts", of({unified})},
    MetadataFault{"draft_extend_counts_the_prefix_only",
                  "a draft extend step passes the lengths from before its tokens",
                  "sgl-project/sglang#26512", draft_extend_counts_the_prefix_only, "seqused_k",
                  "a draft_extend_v2 step", of({unified})},
    MetadataFault{"seq_lens_short_by_one", "seq_lens leaves out the newest key",
                  "sgl-project/sglang#26512", seq_lens_short_by_one, "seq_lens", "a live request",
                  of({extend, decode, vllm_cpu})},
    MetadataFault{"seq_lens_long_by_one", "seq_lens counts one key that was never written",
                  "vllm-project/vllm-ascend#14883", seq_lens_long_by_one, "seq_lens",
                  "a live request", of({extend, decode, vllm_cpu})},
    MetadataFault{
        "prefix_short_by_draft_count",
        "a verify step passes the committed length as the total, so the kernel's prefix is "
        "short by the draft count",
        "sgl-project/sglang#36430", prefix_short_by_draft_count, "seqused_k, seq_lens",
        "a target_verify step", of({unified, extend, vllm_cpu})},
    MetadataFault{"draft_decode_without_step",
                  "a draft decode step passes the lengths from before drafting, without + step + 1",
                  "sgl-project/sglang#36430", draft_decode_without_step, "seqused_k, seq_lens",
                  "a draft_decode step", of({unified, decode, vllm_cpu})},
    MetadataFault{"rejected_drafts_still_counted",
                  "draft decode lengths still include verify tokens that were rejected",
                  "vllm-project/vllm-ascend#14883", rejected_drafts_still_counted,
                  "seqused_k, seq_lens", "a draft_decode step", of({unified, decode, vllm_cpu})},
    // Rows of q
    MetadataFault{"verify_length_from_server_argument",
                  "the verify width is the start-up draft count, not what the batch holds",
                  "sgl-project/sglang#31221", verify_length_from_server_argument, "cu_seqlens_q",
                  "a target_verify step where some request has other drafts than num_draft_tokens",
                  of({unified})},
    MetadataFault{"verify_length_from_total_over_batch",
                  "the verify width is rows // batch, which is right only for equal widths",
                  "sgl-project/sglang#31221", verify_length_from_total_over_batch, "cu_seqlens_q",
                  "a target_verify step whose requests differ in drafts", of({unified})},
    MetadataFault{"qo_indptr_equal_lengths",
                  "query offsets are equally spaced although the widths differ; the total agrees",
                  "vllm-project/vllm#31693", qo_indptr_equal_lengths, "cu_seqlens_q",
                  "requests of different lengths with a whole average", of({unified})},
    MetadataFault{"qo_indptr_one_row_apart_too_little",
                  "query offsets are spaced by the draft steps, one row less than rows are apart",
                  "sgl-project/sglang#27545", qo_indptr_one_row_apart_too_little, "cu_seqlens_q",
                  "two requests or more, of one length of at least 2", of({unified})},
    MetadataFault{"max_seqlen_q_one", "max_seqlen_q is 1, so the kernel maps row i to request i",
                  "sgl-project/sglang#36915", max_seqlen_q_one, "max_seqlen_q",
                  "a request of two new tokens or more", of({unified})},
    MetadataFault{"start_loc_shifted", "extend_start_loc of every later request is one row early",
                  "sgl-project/sglang#27545", start_loc_shifted, "extend_start_loc",
                  "a live request behind the first", of({extend})},
    MetadataFault{"max_len_extend_too_small",
                  "max_len_extend is smaller than the longest request, so rows are never computed",
                  "vllm-project/vllm#32312", max_len_extend_too_small, "max_len_extend",
                  "a request of two new tokens or more, and no tree mask", of({extend})},
    // Where the keys lie
    MetadataFault{"block_table_row_of_previous_request",
                  "each request reads through the table row of the request before it",
                  "sgl-project/sglang#22958", block_table_row_of_previous_request,
                  "block_table, req_to_token", "two requests with different keys, the second live",
                  of({unified, extend, decode, vllm_cpu})},
    MetadataFault{"block_table_spills_into_next_row",
                  "page ids of later steps go past a row's columns, into the next request's row",
                  "sgl-project/sglang#27360", block_table_spills_into_next_row, "block_table",
                  "a live request behind the first, and no window", of({unified})},
    MetadataFault{"block_table_stale_page",
                  "the newest page's table entry is not updated and names another page",
                  "sgl-project/sglang#40410", block_table_stale_page, "block_table, req_to_token",
                  "a live request with keys in the pool", of({unified, extend, decode, vllm_cpu})},
    MetadataFault{"block_table_without_draft_slack",
                  "the table is as wide as the committed context and has no column for the drafts",
                  "sgl-project/sglang#35985", block_table_without_draft_slack, "block_table",
                  "new tokens that begin another page", of({unified})},
    MetadataFault{"draft_slots_assumed_consecutive",
                  "draft slots are taken as the slots right after the last committed one",
                  "huggingface/text-generation-inference#2711", draft_slots_assumed_consecutive,
                  "block_table, req_to_token",
                  "a target_verify or draft_decode step over pages of one token, whose slots do "
                  "not follow one another",
                  of({unified, decode})},
    MetadataFault{"req_to_token_int32",
                  "slots are int32 although slot * stride passes 2^31 elements of the pool",
                  "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp: slots are read as index_t",
                  req_to_token_int32, "req_to_token",
                  "an int64 table whose offsets pass 2^31 elements", of({extend})},
    MetadataFault{"loc_off_by_one", "the new key is stored one slot beside the one that is read",
                  "sgl-project/sglang#25529", loc_off_by_one, "loc", "a call that stores its keys",
                  of({decode})},
    // Heads, launch, scalars, masks
    MetadataFault{
        "kv_heads_expanded",
        "K and V are expanded to all query heads with stride 0: right numbers, no sharing",
        "sgl-project/sglang#30105", kv_heads_expanded, "k", "one kv head for several q heads",
        of({unified})},
    MetadataFault{"no_split_kv", "a short query over a long context runs without split-KV",
                  "sgl-project/sglang#30105", no_split_kv, "launch",
                  "a launch in the split form, of a short query over 1,024 keys or more",
                  of({unified})},
    MetadataFault{"window_one_key_short", "the window is passed one key too small",
                  "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py: "
                  "(window - 1, 0) beside (window, -1)",
                  window_one_key_short, "window_size, sliding_window_size, sliding_window",
                  "a window of two keys or more that some live request fills",
                  all_but({paged_ragged, mla_decode})},
    MetadataFault{
        "window_one_key_long", "the window admits one key too many", "sgl-project/sglang#34273",
        window_one_key_long, "window_size, sliding_window_size, sliding_window",
        "a window that some live request has more keys than", all_but({paged_ragged, mla_decode})},
    MetadataFault{"window_missing", "a windowed layer reaches the kernel without its window",
                  "sgl-project/sglang#38756", window_missing,
                  "window_size, sliding_window_size, sliding_window",
                  "a window that some live request has more keys than",
                  all_but({paged_ragged, mla_decode})},
    MetadataFault{"scale_from_head_dim", "1/sqrt(head_dim) is passed instead of the layer's scale",
                  "sgl-project/sglang#38754", scale_from_head_dim, "softmax_scale, sm_scale, scale",
                  "a scale that is not 1 / sqrt(head_dim)", all},
    MetadataFault{"softcap_missing", "the layer's logit cap is not passed",
                  "vllm-project/vllm-metal#665", softcap_missing,
                  "softcap, logit_cap, logits_soft_cap", "a layer with a cap",
                  all_but({mla_decode})},
    MetadataFault{"sinks_missing", "the layer's attention sinks are not passed", "kekzl/imp#1346",
                  sinks_missing, "sinks, sink_ptr, s_aux", "a layer with sinks",
                  all_but({paged_ragged, mla_decode})},
    MetadataFault{"k_descale_missing", "K is stored in fp8 and its descale is not passed",
                  "flashinfer-ai/flashinfer#1023", k_descale_missing, "k_descale",
                  "a descale of K other than 1", of({unified})},
    MetadataFault{"tree_mask_transposed", "the tree mask has keys in rows and queries in columns",
                  "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp: mask[request][query][key]",
                  tree_mask_transposed, "tree_mask", "a mask that is not its own transpose",
                  of({extend})},
    MetadataFault{"tree_mask_missing", "a draft tree is verified with the plain causal mask",
                  "facebookresearch/xformers#1185", tree_mask_missing, "tree_mask",
                  "a draft tree with branches", of({extend})},
    // What the CPU kernels take on trust
    MetadataFault{"encoder_lens_missing", "the encoder's lengths are not passed",
                  "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp: encoder_lens is optional",
                  encoder_lens_missing, "encoder_lens", "a live request with encoder tokens",
                  of({extend, decode})},
    MetadataFault{"window_beside_an_encoder",
                  "a window that covers everything is passed together with encoder_lens",
                  "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp: the window sets the offset",
                  window_beside_an_encoder, "sliding_window_size",
                  "a live request with encoder tokens, and no cross attention", of({decode})},
    MetadataFault{
        "output_transposed", "the output is a view whose heads lie outside its rows",
        "sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp: output's strides are not read",
        output_transposed, "output", "two rows and two heads or more", of({decode})},
    // MLA
    MetadataFault{"mla_verify_length_configured",
                  "MLA offsets are spaced by another draft length than the batch holds",
                  "sgl-project/sglang#31221", mla_verify_length_configured, "qo_indptr",
                  "a target_verify step", of({mla_decode})},
    MetadataFault{"mla_kv_short_by_draft_count", "kv_indptr counts the committed keys only",
                  "sgl-project/sglang#26512", mla_kv_short_by_draft_count, "kv_indptr",
                  "a target_verify step", of({mla_decode})},
    MetadataFault{"mla_kv_indices_off_by_one", "kv_indices are shifted by one entry",
                  "sgl-project/sglang#27485", mla_kv_indices_off_by_one, "kv_indices",
                  "two entries or more that differ", of({mla_decode})},
    MetadataFault{"mla_last_page_len_of_sequence",
                  "kv_last_page_lens holds the sequence length instead of the last page's",
                  "vllm-project/vllm#31282", mla_last_page_len_of_sequence, "kv_last_page_lens",
                  "a live request of other than one key", of({mla_decode})},
    MetadataFault{"mla_page_size_of_pool",
                  "page_size is the pool's although kv_indices are token slots",
                  "sgl-project/sglang#25556", mla_page_size_of_pool, "page_size",
                  "a pool of pages of more than one token", of({mla_decode})},
    MetadataFault{"mla_kv_indptr_int64", "kv_indptr is int64 where the kernel reads int32 pointers",
                  "flashinfer-ai/flashinfer#1654", mla_kv_indptr_int64, "kv_indptr",
                  "an int32 array", of({mla_decode})},
    MetadataFault{"mla_works_of_one_row", "verify runs on work lists for one row a request",
                  "vllm-project/vllm#45227", mla_works_of_one_row, "work_info_set",
                  "two or more new tokens a request, pages of one token", of({mla_decode})},
    MetadataFault{"mla_works_of_one_row_less", "the work lists are those of other query offsets",
                  "ROCm/aiter#4964", mla_works_of_one_row_less, "work_info_set",
                  "three or more new tokens a request, pages of one token", of({mla_decode})},
    MetadataFault{"mla_works_of_the_step_before",
                  "the work lists are those of the lengths before this step's tokens",
                  "modelled: a replay whose planner did not run", mla_works_of_the_step_before,
                  "work_info_set", "a new token, pages of one token", of({mla_decode})},
    MetadataFault{"mla_works_last_part_not_merged",
                  "the last part of a request's keys is not merged",
                  "modelled: a reduction list one entry short", mla_works_last_part_not_merged,
                  "reduce_indptr", "a request of more keys than one unit takes", of({mla_decode})},
    MetadataFault{"mla_works_merge_an_unwritten_part", "a partial result nobody wrote is merged",
                  "ROCm/aiter#4420", mla_works_merge_an_unwritten_part, "reduce_indptr",
                  "a request of more keys than one unit takes", of({mla_decode})},
};

}  // namespace

std::span<const MetadataFault> all_metadata_faults() {
  static const std::vector<MetadataFault> every = [] {
    std::vector<MetadataFault> list(faults.begin(), faults.end());
    for (const auto later : {later_metadata_faults(), second_metadata_faults()}) {
      list.insert(list.end(), later.begin(), later.end());
    }
    return list;
  }();
  return every;
}

const MetadataFault* find_metadata_fault(std::string_view id) {
  for (const MetadataFault& fault : all_metadata_faults()) {
    if (fault.id == id) return &fault;
  }
  return nullptr;
}

}  // namespace attest
