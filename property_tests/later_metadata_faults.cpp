// Faults of a call that were written after the oracles, the rules and the hypotheses were fixed, by
// somebody who had read none of them.

#include <array>

#include "property_tests/fault_edits.hpp"
#include "property_tests/metadata_faults.hpp"
#include "property_tests/signature_sets.hpp"

namespace attest {
namespace {

using enum Signature;
using namespace signature_sets;

constexpr std::array faults = {
    // Where the keys lie
    MetadataFault{"block_table_holds_token_slots",
                  "the table holds the slots of pages' first tokens where page ids are read",
                  "sgl-project/sglang#36298", block_table_holds_token_slots, "block_table",
                  "pages of more than one token", of({unified, vllm_cpu})},
    MetadataFault{
        "table_names_a_freed_page",
        "a prefix's first page was given back for the cache's own, and the table not told",
        "sgl-project/mini-sglang#142", table_names_a_freed_page, "block_table",
        "a free page, a live request whose first page is committed, and no window",
        of({unified, vllm_cpu})},
    MetadataFault{"pool_rows_of_batch_positions",
                  "req_pool_indices are 0, 1, 2, ... instead of the requests' rows",
                  "vllm-project/vllm#56734", pool_rows_of_batch_positions, "req_pool_indices",
                  "a live request that reads the table", of({extend, decode})},
    MetadataFault{"kv_indices_tail_not_filled",
                  "kv_indices are filled in whole blocks of 64, and the rest of a list stays 0",
                  "modelled: the number of blocks rounded down", kv_indices_tail_not_filled,
                  "kv_indices, kv_page_indices", "a list whose length 64 does not divide",
                  of({mla_decode, batch_prefill, paged_ragged, legacy_extend})},
    MetadataFault{"surplus_page_at_a_boundary",
                  "a list holds the page of the next token when the last one is full",
                  "pegainfer-project/pegainfer#291", surplus_page_at_a_boundary, "kv_indptr",
                  "a live request whose last page is full", of({mla_decode, paged_ragged})},
    MetadataFault{"kv_indptr_counts_pages",
                  "kv_indptr grows by pages of the pool where the entries are slots",
                  "sgl-project/sglang#8593", kv_indptr_counts_pages, "kv_indptr",
                  "a pool of pages of more than one token",
                  of({mla_decode, batch_prefill, paged_ragged, legacy_extend})},
    MetadataFault{"new_keys_listed_in_the_pool",
                  "kv_indices list this step's tokens too, which come as tensors of their own",
                  "modelled: one of two meanings of a length", new_keys_listed_in_the_pool,
                  "kv_indptr", "a live request with new tokens", of({legacy_extend})},
    // Lengths and rows
    MetadataFault{"chunk_counts_the_whole_prompt",
                  "a chunk of a prompt passes the length up to the end of the next one",
                  "GeeeekExplorer/nano-vllm#213", chunk_counts_the_whole_prompt,
                  "seqused_k, seq_lens", "an extend or mixed step with two new tokens in a request",
                  of({unified, extend, vllm_cpu})},
    MetadataFault{"lengths_in_another_order",
                  "requests were reordered after their lengths were copied",
                  "modelled: one array that a reordering of the batch forgets",
                  lengths_in_another_order, "seqused_k, seq_lens", "requests of different lengths",
                  of({unified, extend, decode, vllm_cpu})},
    MetadataFault{
        "offsets_of_padded_rows", "query offsets are those of rows padded to the longest request",
        "vllm-project/vllm#25251", offsets_of_padded_rows,
        "cu_seqlens_q, qo_indptr, query_start_loc", "requests with different numbers of new tokens",
        of({unified, batch_prefill, legacy_extend, vllm_cpu})},
    MetadataFault{"encoder_lens_of_the_longest",
                  "every request passes the longest encoder's length", "vllm-project/vllm#29268",
                  encoder_lens_of_the_longest, "encoder_lens", "encoders of different lengths",
                  of({extend, decode})},
    MetadataFault{
        "partitions_of_a_shorter_step", "max_num_partitions is what the shortest request needs",
        "huggingface/transformers#45323", partitions_of_a_shorter_step, "max_num_partitions",
        "requests of different numbers of partitions", of({paged_ragged})},
    MetadataFault{"max_seqlen_k_of_the_capture",
                  "max_seqlen_k stays at the 1 that a graph was captured with",
                  "huggingface/transformers#45323", max_seqlen_k_of_the_capture, "max_seqlen_k",
                  "a window that some live request has more keys than", of({batch_prefill})},
    // Masks and factors
    MetadataFault{"window_of_another_layer", "a layer without a window passes another layer's",
                  "vllm-project/vllm#17574", window_of_another_layer,
                  "window_size, sliding_window_size, sliding_window",
                  "a layer without a window, and no encoder",
                  of({unified, decode, batch_prefill, legacy_extend, vllm_cpu})},
    MetadataFault{"causal_not_passed", "the causal flag is not set", "NVIDIA/TensorRT-LLM#17935",
                  causal_not_passed, "causal, is_causal",
                  "two new tokens in a request, and no mask or window in its place",
                  of({batch_prefill, legacy_extend, vllm_cpu})},
    MetadataFault{"tree_mask_shows_parents_only",
                  "the tree mask shows a draft itself and its parent, no earlier ancestor",
                  "modelled: a closure that stops after one step", tree_mask_shows_parents_only,
                  "tree_mask, custom_mask", "a mask with an ancestor further up than the parent",
                  of({extend, legacy_extend})},
    MetadataFault{"mask_offsets_of_square_masks",
                  "mask_indptr grows by new * new entries where the rows hold committed ones too",
                  "sgl-project/sglang#32920", mask_offsets_of_square_masks, "mask_indptr",
                  "a mask, and a live request behind committed keys", of({legacy_extend})},
    MetadataFault{"scale_applied_twice", "the scale is in q already and passed all the same",
                  "AI-Hypercomputer/maxtext#1370", scale_applied_twice,
                  "softmax_scale, sm_scale, scale", "a scale other than 1", all},
    MetadataFault{"v_scale_not_passed", "V is stored in fp8 and its factor is not passed",
                  "lightseekorg/tokenspeed#759", v_scale_not_passed, "v_descale, v_scale",
                  "a descale of V other than 1", of({batch_prefill, paged_ragged})},
};

}  // namespace

std::span<const MetadataFault> later_metadata_faults() { return faults; }

}  // namespace attest
