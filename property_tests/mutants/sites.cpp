#include <algorithm>
#include <array>

#include "property_tests/mutants/mutant.hpp"

namespace attest {
namespace {

struct SiteRow {
  std::string_view id;  ///< a part of the fault's name
  Site site;
};

using enum Site;

// What is not the kernel's mathematics. The first row whose id is in the name decides.
constexpr SiteRow rows[] = {
    {"faulty-wrap-", kernel_address},
    {"faulty-graph_", graph},
    // Launchers and wrappers.
    {"window_ignored", launcher},
    {"window_tail_of_the_pool", launcher},
    {"partitions_of_", launcher},
    {"keys_past_16k_ignored", launcher},
    {"bounded_by_the_maximum", launcher},
    {"rows_past_max_len_skipped", launcher},
    {"rows_past_the_batch_skipped", launcher},
    {"left_over_heads_skipped", launcher},
    {"splits_from_", launcher},
    {"small_head_dims_not_written", launcher},
    {"softcap_missing", wrapper},
    {"logit_cap_ignored", wrapper},
    {"descale", wrapper},
    {"tree_mask_", wrapper},
    {"f16_as_bf16", wrapper},
    {"cross_attention_takes_seq_lens", wrapper},
    {"window_overwrites_encoder", wrapper},
    {"int64_offsets_read_as_int32", wrapper},
    {"output_taken_as_contiguous", wrapper},
    {"page_size_taken_as_16", wrapper},
    {"k_descale_twice", wrapper},
    {"stored_after_attention", launcher},
    {"pages_of_16_in_tiles_of_32", launcher},
    // Addresses.
    {"stale_page", kernel_address},
    {"v_of_neighbour_head", kernel_address},
    {"v_slot_one_further", kernel_address},
    {"kv_heads_interleaved", kernel_address},
    {"head_blocks_straddle_groups", kernel_address},
    {"packing_starts_at_head_0", kernel_address},
    {"_offset_in_", kernel_address},
    {"_elements_int32", kernel_address},
    {"_bytes_int32", kernel_address},
    {"_bytes_uint32", kernel_address},
    {"zeros_past_2_gib", kernel_address},
    {"far_keys_read_zero", kernel_address},
    {"aliases_past_4_gib", kernel_address},
    {"descriptor_size_in_32_bits", kernel_address},
    {"page_stride_assumed", kernel_address},
    {"table_read_to_the_tiles_end", kernel_address},
    {"mask_padding_visible", kernel_address},
    {"reads_past_kv_len", kernel_address},
    {"reads_to_the_end_of_the_page", kernel_address},
    {"stores_at_next_slot", kernel_address},
    {"store_rounded_to_16_bytes", kernel_address},
    {"scratch_of_the_last_item", kernel_address},
    {"mask_bytes_reused", kernel_address},
    {"mask_row_", kernel_address},
    {"page_id_in_16_bits", kernel_address},
    {"page_lists_at_a_fixed_stride", kernel_address},
    {"v_addressed_with_ks_strides", kernel_address},
    {"heads_taken_as_dense", kernel_address},
    {"group_from_the_kv_heads", kernel_address},
    {"page_of_the_token_before", kernel_address},
    {"single_v_row_dropped", kernel_address},
    {"packs_shared_across_heads", kernel_address},
    {"one_table_entry_a_tile", kernel_address},
    {"table_rows_packed", kernel_address},
    {"v_of_the_other_stage", kernel_address},
    {"probabilities_read_at_the_padded_width", kernel_address},
    {"request_index_dropped", kernel_address},
    {"odd_page_behind_the_even_one", kernel_address},
    {"table_not_consulted", kernel_address},
    {"four_page_ids_reused", kernel_address},
    {"first_row_of_the_request_before", kernel_address},
    {"kv_head_is_the_q_head", kernel_address},
    {"k_head_stride_zero", kernel_address},
    {"q_rows_before_heads", kernel_address},
    {"new_keys_from_row_zero", kernel_address},
    {"latent_v_behind_the_rope", kernel_address},
    {"v_block_of_v_dims", kernel_address},
    {"v_page_one_step_late", kernel_address},
    {"v_second_half_repeats_the_first", kernel_address},
    {"v_pairs_swapped", kernel_address},
    {"mask_read_one_entry_late", kernel_address},
    {"mask_begins_at_the_tile", kernel_address},
    // Reductions.
    {"sink_in_every_split", reduction},
    {"last_split_dropped", reduction},
    {"merge_", reduction},
    {"first_tile_of_splits_skipped", reduction},
    {"splits_not_rescaled", reduction},
    {"groups_not_rescaled", reduction},
    {"empty_split_is_nan", reduction},
    {"sink_missing_in_the_reduction", reduction},
    {"reduction_forgets_the_first_row", reduction},
    {"padding_rows_written", reduction},
    {"split_weights_in_base_2", reduction},
    {"split_outputs_in_bf16", reduction},
    {"v_descale_in_every_split", reduction},
    {"tile_in_two_splits", reduction},
    {"lse_of_the_last_split", reduction},
    {"sum_of_one_group", reduction},
    {"sink_in_empty_splits", reduction},
    {"split_remainder_lost", reduction},
    {"split_maxima_in_bf16", reduction},
    // The process.
    {"faulty-crash", process},
    {"faulty-hang", process},
    {"writes_past_the_end", process},
};

// The mutations that a published mutation test of a unified attention kernel used, by its numbers.
constexpr GenericMutant generic[] = {
    {"m01", "causal mask one too long", "faulty-causal_one_too_long"},
    {"m02", "causal mask one too short", "faulty-causal_one_too_short"},
    {"m03", "last partial tile dropped", "faulty-last_partial_tile_dropped"},
    {"m04", "context length is the total length", "faulty-context_is_total_length"},
    {"m05", "no causal mask among the drafts", "faulty-causal_none_among_new_tokens"},
    {"m06", "outputs of the splits not rescaled", "faulty-merge_not_rescaled"},
    {"m07", "last split dropped", "faulty-last_split_dropped"},
    {"m08", "first tile of later splits skipped", "faulty-first_tile_of_splits_skipped"},
    {"m09", "V of the neighbouring kv head", "faulty-v_of_neighbour_head"},
    {"m10", "V slot off by one in its page", "faulty-v_slot_one_further"},
    {"m11", "softmax sum not rescaled", "faulty-softmax_sum_not_rescaled"},
    {"m12", "scale 1 % too large", "faulty-scale_one_percent_large"},
    {"m13", "table row of the previous request", "metadata:block_table_row_of_previous_request"},
    {"m14", "first key ignored", "faulty-first_key_ignored"},
    {"m15", "benign: P rounded before the sum", "faulty-sum_of_rounded_p"},
    {"m20", "window one too long", "faulty-window_one_too_long"},
    {"m21", "window one too short", "faulty-window_one_too_short"},
    {"m22", "sink not brought to base 2", "faulty-sink_in_base_2"},
    {"m23", "sink counted in every split", "faulty-sink_in_every_split"},
    {"m24", "sink of the next head", "faulty-sink_of_next_head"},
    {"m26", "softcap left out", "faulty-softcap_missing"},
    {"m27", "softcap not brought back to base 2", "faulty-softcap_in_base_2"},
};

}  // namespace

Site site_of_fault(std::string_view id) {
  const auto* const at = std::find_if(std::begin(rows), std::end(rows), [&](const SiteRow& row) {
    return id.find(row.id) != std::string_view::npos;
  });
  return at == std::end(rows) ? kernel_math : at->site;
}

std::span<const GenericMutant> generic_mutants() { return generic; }

}  // namespace attest
