#include "property_tests/mutants/explained.hpp"

namespace attest {
namespace {

using enum Subject;

// What each fault does, in the words of hypotheses.cpp and its neighbours. Written from what a
// fault's own row says (faults.cpp, reported_faults.cpp, planted_faults.cpp); some rows were
// changed after the diagnosis of them was seen, so the share of right names is a fit
// (docs/judge.md).
constexpr Diagnosable table[] = {
    // Offsets.
    {"faulty-wrap-", address, "wrapped_offset"},
    {"zeros_past_2_gib", address, "zeros_past_2_gib"},
    {"far_keys_read_zero", address, "zeros_past_2_gib"},
    {"descriptor_size_in_32_bits", address, "zeros_past_2_gib"},
    {"aliases_past_4_gib", address, "wrapped_offset"},
    {"_offset_in_", address, "wrapped_offset"},
    {"_elements_int32", address, "wrapped_offset"},
    {"_bytes_int32", address, "wrapped_offset"},
    {"_bytes_uint32", address, "wrapped_offset"},
    // What lies where no kernel may read.
    {"reads_past_kv_len", address, "stray_read"},
    {"reads_to_the_end_of_the_page", address, "stray_read"},
    {"v_loaded_to_the_end_of_the_page", address, "stray_read"},
    {"v_before_the_window_read", address, "stray_read"},
    {"page_stride_assumed", address, "page_stride_taken_as_dense,strides_taken_as_dense"},
    {"pool_pass_reads_new_rows", address, ""},
    // Pages, slots, heads, rows of the output.
    {"faulty-stale_page", address,
     "first_page_of_previous_request,first_slots_of_previous_request,first_stored_slots_of_"
     "previous_request,first_page_from_previous_request"},
    {"v_slot_one_further", address,
     "v_slot_plus_1,v_place_plus_1,v_position_plus_1,v_offset_of_position_plus_1"},
    {"v_of_neighbour_head", address, "v_heads_shifted"},
    {"kv_heads_interleaved", address, "head_modulo_the_kv_heads"},
    {"head_blocks_straddle_groups", address, "group_to_a_power_of_two"},
    {"packing_starts_at_head_0", address, ""},
    {"window_tail_of_the_pool", address, ""},
    {"int64_offsets_read_as_int32", address, ""},
    {"output_taken_as_contiguous", address, "output_of_heads_and_rows_swapped"},
    {"first_row_repeated", address, ""},
    {"probabilities_read_at_the_padded_width", address, ""},
    {"mask_padding_visible", address, ""},
    {"last_head_not_written", address, "unwritten_row"},
    {"small_head_dims_not_written", address, "unwritten_row"},
    {"rows_past_8_not_stored", address, "unwritten_row"},
    // The call says so too.
    {"rows_past_max_len_skipped", address, "unwritten_row,metadata"},
    {"reduction_forgets_the_first_row", address, "unwritten_row"},
    // Which keys a row sees, or are walked.
    // HIP shifts the position, so a window moves along.
    {"hip_causal_one_too_long", mask, "causal_one_long,positions_one_late"},
    {"hip_causal_one_too_short", mask, "causal_one_short,positions_one_early"},
    {"causal_one_too_long", mask, "causal_one_long"},
    {"causal_one_too_short", mask, "causal_one_short"},
    {"causal_top_left", mask, "causal_top_left"},
    {"causal_none_among_new_tokens", mask, "no_causal_mask"},
    {"context_is_total_length", mask, "positions_from_the_total"},
    {"first_key_ignored", mask, "first_key_ignored"},
    {"last_partial_tile_dropped", mask, "last_tile_missing"},
    // As many as there are new tokens: of one token, one.
    {"prefix_short_by_new_tokens", mask, "prefix_hole"},
    {"window_one_too_long", mask, "window_one_long"},
    {"window_one_too_short", mask, "window_one_short"},
    {"window_ignored", mask, "window_off"},
    {"window_floored_to_pages", mask, "window_in_whole_pages"},
    {"window_prunes_one_tile_more", mask, "window_without_its_first_tile_of_64"},
    {"partitions_of_the_longest", mask, "last_tile_missing"},
    {"partitions_of_32_keys", mask, ""},
    {"keys_past_16k_ignored", mask, ""},
    {"bounded_by_the_maximum", mask, ""},
    {"tree_mask_ignored", mask, "tree_ignored"},
    {"tree_mask_of_first_request", mask, "tree_of_request_0"},
    {"rows_end_with_the_first", mask, "rows_see_what_the_first_sees"},
    {"merge_stops_at_the_first_row", mask,
     "rows_end_with_the_first_ones_split,rows_end_with_the_first_ones_split_of_the_window"},
    // As many as the launch has.
    {"last_split_dropped", mask,
     "last_split_missing,last_of_8_splits_missing,last_of_64_splits_missing,"
     "last_split_of_the_window_missing,last_of_8_splits_of_the_window_missing"},
    {"first_tile_of_splits_skipped", mask,
     "first_tile_of_the_second_split_missing,first_tile_of_8_splits_missing,"
     "first_tile_of_64_splits_missing,first_tile_of_the_windows_second_split_missing,"
     "first_tile_of_8_splits_of_the_window_missing"},
    // Written after the oracles were fixed (later_mutants.cpp has what a right name must say).
    {"window_of_the_blocks_first_row", mask,
     "window_of_the_first_row_of_a_block_of_16_packed_rows"},
    {"window_from_the_first_row", mask, "window_from_the_first_row"},
    {"window_not_among_new_tokens", mask, "window_only_over_the_prefix"},
    {"causal_in_blocks_of_four", mask, "rows_end_with_their_block_of_4"},
    {"mask_bytes_reused", mask, "tree_columns_repeat_after_8"},
    {"mask_row_stride_without_new", mask, "tree_mask_rows_by_committed_from_their_own"},
    {"mask_row_is_the_packed_row", mask, "tree_mask_packed_row_modulo_the_rows"},
    {"row_ends_in_another_order", mask, "keys_of_packed_rows_and_heads_swapped"},
    {"window_edge_", mask, "as_zeros_what_the_window_hides_of_its_first_tile_of_64"},
    {"causal_of_the_blocks_last_row", mask, "end_of_the_last_row_of_a_block_of_16_packed_rows"},
    {"tile_in_two_splits", mask,
     "first_tile_of_the_second_split_twice,first_tile_of_the_windows_second_split_twice"},
    {"page_of_the_token_before", address,
     "first_key_of_a_page_from_the_page_before,each_key_is_the_one_before,page_of_position_minus_"
     "1"},
    {"one_table_entry_a_tile", address, "one_page_a_tile,one_page_a_tile_of_64"},
    {"page_size_taken_as_16", address, "page_size_taken_as_16"},
    {"page_id_in_16_bits", address, "page_id_in_16_bits"},
    {"page_lists_at_a_fixed_stride", address, ""},
    {"v_addressed_with_ks_strides", address, "v_strides_of_the_other_tensor"},
    {"heads_taken_as_dense", address, "head_stride_taken_as_dense"},
    {"group_from_the_kv_heads", address, "head_over_the_kv_heads_or_the_last"},
    {"table_rows_packed", address, "lists_begin_by_the_longest_list"},
    {"v_of_the_other_stage", address, ""},
    {"single_v_row_dropped", address, "v_zero_of_the_last_odd_key"},
    {"stored_after_attention", address, "new_keys_read_before_they_are_stored"},
    {"packs_shared_across_heads", address, "kv_head_0"},
    {"metadata:v_scale_not_passed", metadata, "metadata,v_descale_missing"},
    // The second batch (second_later_mutants.cpp); some names came after the first, blind run.
    {"request_index_dropped", address, "from_request_0"},
    {"odd_page_behind_the_even_one", address, "one_entry_for_2_pages"},
    {"table_not_consulted", address, "table_ignored"},
    {"four_page_ids_reused", address, "columns_repeat_after_4"},
    {"first_row_of_the_request_before", address, "first_rows_of_previous_request_as_the_last"},
    {"kv_head_is_the_q_head", address,
     "head_modulo_the_kv_heads_or_the_last,head_number_at_most_the_last"},
    {"k_head_stride_zero", address, "k_kv_head_0"},
    {"q_rows_before_heads", address, "q_of_packed_rows_and_heads_swapped"},
    {"new_keys_from_row_zero", address, "new_rows_without_the_first_row"},
    {"latent_v_behind_the_rope", address,
     "v_rows_begin_elements_late_by_what_k_has_more,v_rows_begin_elements_late_by_64"},
    {"v_block_of_v_dims", address, "v_tiles_of_64_by_a_tile_by_the_sizes_of_v_and_k"},
    {"v_page_one_step_late", address, "v_page_of_position_minus_a_page"},
    {"v_second_half_repeats_the_first", address,
     "v_second_half_repeats_the_first_of_64_keys,v_place_in_pages_of_32"},
    {"v_pairs_swapped", address, "v_halves_swapped_of_2_keys,v_pages_swapped_in_pairs"},
    {"row_number_over_the_group", mask,
     "without_all_but_the_first_share_of_8_of_the_new_keys,rows_see_what_the_first_sees"},
    {"causal_from_the_longest_request", mask, "ends_fewer_by_missing_new_tokens"},
    {"own_key_missing_past_16_rows", mask,
     "without_the_own_key_behind_row_16,keys_of_previous_row_of_the_request"},
    {"window_of_the_last_row", mask, "window_of_the_last_row"},
    {"window_of_row_numbers", mask, "window_top_left"},
    {"full_last_page_is_empty", mask,
     "without_the_full_last_page_of_the_request,without_the_full_last_tile_of_16_of_the_request"},
    {"pages_of_16_in_tiles_of_32", mask, "first_1_in_2_of_the_pages_only"},
    {"prefix_tail_dropped", mask, "without_the_part_after_the_last_whole_tile_of_32_of_the_prefix"},
    {"split_remainder_lost", mask,
     "last_tile_missing,without_all_but_the_first_tile_of_256_of_the_window,without_what_8_splits_"
     "leave_over_in_tiles_of_64"},
    {"tail_places_score_zero", mask,
     "as_zeros_the_padding_of_the_last_tile_of_64,as_zeros_the_padding_of_the_last_tile_of_64_from_"
     "the_window,as_zeros_the_padding_of_the_last_tile_of_64_from_the_requests_window"},
    {"mask_not_read_before_the_block", mask, "tree_unread_before_blocks_of_4"},
    {"mask_read_one_entry_late", mask,
     "tree_square_read_1_late,tree_square_read_1_late_then_seen,tree_square_read_1_late_and_"
     "around"},
    {"mask_begins_at_the_tile", mask, "tree_columns_from_the_tile_of_64"},
    {"tree_seen_by_depth", mask, "tree_seen_by_depth"},
    {"sink_scaled", arithmetic, "sink_scaled"},
    {"k_descale_twice", arithmetic, "k_descale_twice"},
    // What the meaning of a call does not have, or has under the hypothesis's own name.
    {"metadata:output_transposed", metadata, ""},
    {"metadata:k_descale_missing", metadata, "metadata,k_descale_missing"},
    // Arguments that a kernel or its wrapper passes over, as the call would.
    {"cross_attention_takes_seq_lens", metadata, "metadata"},
    {"window_overwrites_encoder", metadata, ""},
    // Arithmetic.
    {"scale_one_percent_large", arithmetic, "scale_one_percent_large"},
    {"faulty-softcap_missing", arithmetic, "softcap_missing"},
    {"logit_cap_ignored", arithmetic, "softcap_missing"},
    {"sink_missing_", arithmetic, "sink_missing"},
    {"faulty-sink_missing", arithmetic, "sink_missing"},
    {"hip_sink_missing", arithmetic, "sink_missing"},
    {"sink_in_every_split", arithmetic, "sink_twice"},
    {"sink_in_base_2", arithmetic, "sink_in_base_2"},
    {"sink_of_next_head", arithmetic, "sink_of_next_head"},
    {"descale_of_v_is_ks", arithmetic, "v_descale_is_ks"},
    {"descale_of_v_missing", arithmetic, "v_descale_missing"},
    {"faulty-descales_missing", arithmetic, "descales_missing"},
};

}  // namespace

std::span<const Diagnosable> expected_diagnoses() { return table; }

}  // namespace attest
