#pragma once

namespace attest::hip {

/// Deliberate mistakes of the paged attention kernel, a template argument so that the honest kernel
/// has no trace of them. What each models is a row of faulty_kernels.cpp.
enum class PlantedFault {
  none,
  // Addresses computed in 32 bits.
  k_elements_int32,
  v_elements_int32,
  k_bytes_int32,
  v_bytes_int32,
  k_bytes_uint32,
  page_stride_assumed,
  far_keys_read_zero,
  // Which keys a row sees.
  causal_one_too_long,
  causal_one_too_short,
  window_one_too_long,
  window_one_too_short,
  window_prunes_one_tile_more,
  reads_to_the_end_of_the_page,
  v_loaded_to_the_end_of_the_page,
  bounded_by_the_maximum,
  partitions_of_32_keys,
  // The softmax and the merges.
  masked_tile_floors_maximum,
  softcap_overflows,
  cap_after_mask,
  maximum_of_one_tile,
  groups_not_rescaled,
  splits_not_rescaled,
  last_split_dropped,
  empty_split_is_nan,
  sink_in_every_split,
  sink_missing,
  sink_missing_in_the_reduction,
  sink_missing_under_a_window,
  // Rows.
  packing_starts_at_head_0,
  rows_past_8_not_stored,
  reduction_forgets_the_first_row,
  rows_without_keys_not_written,
  padding_rows_written,
  // Written after the oracles were fixed.
  window_of_the_blocks_first_row,
  causal_of_the_blocks_last_row,
  window_edge_seen_as_whole,
  one_table_entry_a_tile,
  table_rows_packed,
  v_of_the_other_stage,
  small_rescale_left_out,
  sum_of_one_group,
  sink_in_empty_splits,
  /// As PagedArgs::wrap says: one compiled kernel stands for every row of faulty/wrap_faults.cpp.
  offset_wraps,
};
inline constexpr int planted_fault_count = static_cast<int>(PlantedFault::offset_wraps);

}  // namespace attest::hip
