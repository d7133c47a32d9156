#pragma once

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// The edits behind the table in metadata_faults.cpp, by what they touch. Each returns false when
/// it leaves the call as it was (MetadataFault::apply).

// fault_lengths.cpp: how many keys a request has.
bool seqused_k_int32(const Problem&, const SlotMap&, Call&);
bool seqused_k_short_by_one(const Problem&, const SlotMap&, Call&);
bool seqused_k_long_by_one(const Problem&, const SlotMap&, Call&);
bool seqused_k_from_max_seqlen_q(const Problem&, const SlotMap&, Call&);
bool draft_extend_counts_the_prefix_only(const Problem&, const SlotMap&, Call&);
bool seq_lens_short_by_one(const Problem&, const SlotMap&, Call&);
bool seq_lens_long_by_one(const Problem&, const SlotMap&, Call&);
bool prefix_short_by_draft_count(const Problem&, const SlotMap&, Call&);
bool draft_decode_without_step(const Problem&, const SlotMap&, Call&);
bool rejected_drafts_still_counted(const Problem&, const SlotMap&, Call&);

// fault_offsets.cpp: which rows of q belong to a request.
bool verify_length_from_server_argument(const Problem&, const SlotMap&, Call&);
bool verify_length_from_total_over_batch(const Problem&, const SlotMap&, Call&);
bool qo_indptr_equal_lengths(const Problem&, const SlotMap&, Call&);
bool qo_indptr_one_row_apart_too_little(const Problem&, const SlotMap&, Call&);
bool max_seqlen_q_one(const Problem&, const SlotMap&, Call&);
bool start_loc_shifted(const Problem&, const SlotMap&, Call&);
bool max_len_extend_too_small(const Problem&, const SlotMap&, Call&);

// fault_tables.cpp: where the keys lie.
bool block_table_row_of_previous_request(const Problem&, const SlotMap&, Call&);
bool block_table_spills_into_next_row(const Problem&, const SlotMap&, Call&);
bool block_table_stale_page(const Problem&, const SlotMap&, Call&);
bool block_table_without_draft_slack(const Problem&, const SlotMap&, Call&);
bool draft_slots_assumed_consecutive(const Problem&, const SlotMap&, Call&);
bool req_to_token_int32(const Problem&, const SlotMap&, Call&);
bool loc_off_by_one(const Problem&, const SlotMap&, Call&);

// fault_features.cpp: heads, launch, scalars, masks.
bool kv_heads_expanded(const Problem&, const SlotMap&, Call&);
bool no_split_kv(const Problem&, const SlotMap&, Call&);
bool window_one_key_short(const Problem&, const SlotMap&, Call&);
bool window_one_key_long(const Problem&, const SlotMap&, Call&);
bool window_missing(const Problem&, const SlotMap&, Call&);
bool scale_from_head_dim(const Problem&, const SlotMap&, Call&);
bool softcap_missing(const Problem&, const SlotMap&, Call&);
bool sinks_missing(const Problem&, const SlotMap&, Call&);
bool k_descale_missing(const Problem&, const SlotMap&, Call&);
bool tree_mask_transposed(const Problem&, const SlotMap&, Call&);
bool tree_mask_missing(const Problem&, const SlotMap&, Call&);

// fault_encoder.cpp: what the CPU kernels take on trust.
bool encoder_lens_missing(const Problem&, const SlotMap&, Call&);
bool window_beside_an_encoder(const Problem&, const SlotMap&, Call&);
bool output_transposed(const Problem&, const SlotMap&, Call&);

// fault_mla.cpp
bool mla_verify_length_configured(const Problem&, const SlotMap&, Call&);
bool mla_kv_short_by_draft_count(const Problem&, const SlotMap&, Call&);
bool mla_kv_indices_off_by_one(const Problem&, const SlotMap&, Call&);
bool mla_last_page_len_of_sequence(const Problem&, const SlotMap&, Call&);
bool mla_page_size_of_pool(const Problem&, const SlotMap&, Call&);
bool mla_kv_indptr_int64(const Problem&, const SlotMap&, Call&);
bool mla_works_of_one_row(const Problem&, const SlotMap&, Call&);
bool mla_works_of_one_row_less(const Problem&, const SlotMap&, Call&);
bool mla_works_of_the_step_before(const Problem&, const SlotMap&, Call&);
bool mla_works_last_part_not_merged(const Problem&, const SlotMap&, Call&);
bool mla_works_merge_an_unwritten_part(const Problem&, const SlotMap&, Call&);

// later_list_faults.cpp: pages and slots in flat lists, pool rows, tables.
bool block_table_holds_token_slots(const Problem&, const SlotMap&, Call&);
bool table_names_a_freed_page(const Problem&, const SlotMap&, Call&);
bool pool_rows_of_batch_positions(const Problem&, const SlotMap&, Call&);
bool kv_indices_tail_not_filled(const Problem&, const SlotMap&, Call&);
bool surplus_page_at_a_boundary(const Problem&, const SlotMap&, Call&);
bool kv_indptr_counts_pages(const Problem&, const SlotMap&, Call&);
bool new_keys_listed_in_the_pool(const Problem&, const SlotMap&, Call&);

// later_scalar_faults.cpp: lengths, masks, launch limits, factors.
bool chunk_counts_the_whole_prompt(const Problem&, const SlotMap&, Call&);
bool lengths_in_another_order(const Problem&, const SlotMap&, Call&);
bool offsets_of_padded_rows(const Problem&, const SlotMap&, Call&);
bool encoder_lens_of_the_longest(const Problem&, const SlotMap&, Call&);
bool partitions_of_a_shorter_step(const Problem&, const SlotMap&, Call&);
bool max_seqlen_k_of_the_capture(const Problem&, const SlotMap&, Call&);
bool window_of_another_layer(const Problem&, const SlotMap&, Call&);
bool causal_not_passed(const Problem&, const SlotMap&, Call&);
bool tree_mask_shows_parents_only(const Problem&, const SlotMap&, Call&);
bool mask_offsets_of_square_masks(const Problem&, const SlotMap&, Call&);
bool scale_applied_twice(const Problem&, const SlotMap&, Call&);
bool v_scale_not_passed(const Problem&, const SlotMap&, Call&);

// second_metadata_edits.cpp
bool table_without_the_evicted_pages(const Problem&, const SlotMap&, Call&);
bool pages_of_the_prefix_last(const Problem&, const SlotMap&, Call&);
bool branches_read_each_others_drafts(const Problem&, const SlotMap&, Call&);
bool lists_in_another_order(const Problem&, const SlotMap&, Call&);
bool seq_lens_include_the_encoder(const Problem&, const SlotMap&, Call&);
bool mask_before_the_reordering(const Problem&, const SlotMap&, Call&);

}  // namespace attest
