// Faults of a call that were written after the oracles, the rules and the hypotheses were fixed, by
// somebody who had read none of them.

#include <array>

#include "property_tests/fault_edits.hpp"
#include "property_tests/metadata_faults.hpp"

namespace attest {
namespace {

constexpr std::array faults = {
    // Where the keys lie
    MetadataFault{"block_table_holds_token_slots",
                  "the table holds the slots of pages' first tokens where page ids are read",
                  "sgl-project/sglang#36298", block_table_holds_token_slots},
    MetadataFault{
        "table_names_a_freed_page",
        "a prefix's first page was given back for the cache's own, and the table not told",
        "sgl-project/mini-sglang#142", table_names_a_freed_page},
    MetadataFault{"pool_rows_of_batch_positions",
                  "req_pool_indices are 0, 1, 2, ... instead of the requests' rows",
                  "vllm-project/vllm#56734", pool_rows_of_batch_positions},
    MetadataFault{"kv_indices_tail_not_filled",
                  "kv_indices are filled in whole blocks of 64, and the rest of a list stays 0",
                  "modelled: the number of blocks rounded down", kv_indices_tail_not_filled},
    MetadataFault{"surplus_page_at_a_boundary",
                  "a list holds the page of the next token when the last one is full",
                  "pegainfer-project/pegainfer#291", surplus_page_at_a_boundary},
    MetadataFault{"kv_indptr_counts_pages",
                  "kv_indptr grows by pages of the pool where the entries are slots",
                  "sgl-project/sglang#8593", kv_indptr_counts_pages},
    MetadataFault{"new_keys_listed_in_the_pool",
                  "kv_indices list this step's tokens too, which come as tensors of their own",
                  "modelled: one of two meanings of a length", new_keys_listed_in_the_pool},
    // Lengths and rows
    MetadataFault{"chunk_counts_the_whole_prompt",
                  "a chunk of a prompt passes the length up to the end of the next one",
                  "GeeeekExplorer/nano-vllm#213", chunk_counts_the_whole_prompt},
    MetadataFault{
        "lengths_in_another_order", "requests were reordered after their lengths were copied",
        "modelled: one array that a reordering of the batch forgets", lengths_in_another_order},
    MetadataFault{"offsets_of_padded_rows",
                  "query offsets are those of rows padded to the longest request",
                  "vllm-project/vllm#25251", offsets_of_padded_rows},
    MetadataFault{"encoder_lens_of_the_longest",
                  "every request passes the longest encoder's length", "vllm-project/vllm#29268",
                  encoder_lens_of_the_longest},
    MetadataFault{"partitions_of_a_shorter_step",
                  "max_num_partitions is what the shortest request needs",
                  "huggingface/transformers#45323", partitions_of_a_shorter_step},
    MetadataFault{"max_seqlen_k_of_the_capture",
                  "max_seqlen_k stays at the 1 that a graph was captured with",
                  "huggingface/transformers#45323", max_seqlen_k_of_the_capture},
    // Masks and factors
    MetadataFault{"window_of_another_layer", "a layer without a window passes another layer's",
                  "vllm-project/vllm#17574", window_of_another_layer},
    MetadataFault{"causal_not_passed", "the causal flag is not set", "NVIDIA/TensorRT-LLM#17935",
                  causal_not_passed},
    MetadataFault{"tree_mask_shows_parents_only",
                  "the tree mask shows a draft itself and its parent, no earlier ancestor",
                  "modelled: a closure that stops after one step", tree_mask_shows_parents_only},
    MetadataFault{"mask_offsets_of_square_masks",
                  "mask_indptr grows by new * new entries where the rows hold committed ones too",
                  "sgl-project/sglang#32920", mask_offsets_of_square_masks},
    MetadataFault{"scale_applied_twice", "the scale is in q already and passed all the same",
                  "AI-Hypercomputer/maxtext#1370", scale_applied_twice},
    MetadataFault{"v_scale_not_passed", "V is stored in fp8 and its factor is not passed",
                  "lightseekorg/tokenspeed#759", v_scale_not_passed},
};

}  // namespace

std::span<const MetadataFault> later_metadata_faults() { return faults; }

}  // namespace attest
