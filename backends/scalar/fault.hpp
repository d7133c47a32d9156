#pragma once

#include "backends/wrap_model.hpp"

namespace attest {

/// Deliberate mistakes the scalar kernel can be told to make, one at a time. `none` is the honest
/// kernel. What each one models and where it was seen: the table in faulty/faults.cpp. The kernel
/// asks for a fault once per request, tile or row, never per element, so an honest run pays
/// nothing.
enum class Fault {
  none,
  // Which keys a row sees.
  causal_one_too_long,
  causal_one_too_short,
  causal_top_left,
  causal_none_among_new_tokens,
  context_is_total_length,
  first_key_ignored,
  last_partial_tile_dropped,
  prefix_short_by_new_tokens,
  reads_past_kv_len,
  reads_past_kv_len_drops_nan,
  window_one_too_long,
  window_one_too_short,
  window_ignored,
  window_floored_to_pages,
  window_tail_of_the_pool,
  v_before_the_window_read,
  partitions_of_the_longest,
  keys_past_16k_ignored,
  rows_end_with_the_first,
  pool_pass_reads_new_rows,
  tree_mask_ignored,
  tree_mask_of_first_request,
  mask_padding_visible,
  window_from_the_first_row,
  window_not_among_new_tokens,
  causal_in_blocks_of_four,
  mask_bytes_reused,
  mask_row_stride_without_new,
  // Where a key is looked up.
  stale_page,
  v_of_neighbour_head,
  v_slot_one_further,
  kv_heads_interleaved,
  head_blocks_straddle_groups,
  table_read_to_the_tiles_end,
  int64_offsets_read_as_int32,
  byte_offset_in_seqused_dtype,
  element_offset_in_seqused_dtype,
  slot_offset_in_table_dtype,
  zeros_past_2_gib,
  aliases_past_4_gib,
  descriptor_size_in_32_bits,
  page_size_taken_as_16,
  page_id_in_16_bits,
  page_lists_at_a_fixed_stride,
  v_addressed_with_ks_strides,
  heads_taken_as_dense,
  group_from_the_kv_heads,
  page_of_the_token_before,
  // The softmax.
  scale_one_percent_large,
  softcap_missing,
  softcap_in_base_2,
  softmax_sum_not_rescaled,
  p_truncated,
  sum_of_rounded_p,
  accumulator_in_bf16,
  descale_of_v_is_ks,
  descale_of_v_missing,
  descales_missing,
  sink_missing,
  sink_in_every_split,
  sink_in_base_2,
  sink_of_next_head,
  sink_scaled,
  maximum_starts_at_zero,
  p_in_v_dtype,
  scores_in_bf16,
  q_scaled_in_its_own_type,
  cap_before_the_scale,
  tile_padding_capped,
  k_descale_twice,
  // The merge of the splits.
  last_split_dropped,
  merge_not_rescaled,
  merge_stops_at_the_first_row,
  first_tile_of_splits_skipped,
  splits_from_max_seqlen_k,
  splits_from_the_rows,
  split_weights_in_base_2,
  split_outputs_in_bf16,
  v_descale_in_every_split,
  tile_in_two_splits,
  lse_of_the_last_split,
  // What is written, and where.
  output_truncated,
  last_head_not_written,
  first_row_repeated,
  writes_past_the_end,
  small_head_dims_not_written,
  stores_at_next_slot,
  store_offset_in_int32,
  store_rounded_to_16_bytes,
  // The process.
  crash,
  hang,
};

/// What the kernel is told to do wrong: one of the above, or an offset that wraps.
struct Mistake {
  Fault fault = Fault::none;
  WrapModel wrap;
};

/// How offsets wrap under the mistake; `narrow`: the indices that the signature's chain takes its
/// dtype from are int32.
WrapModel wrap_of(const Mistake& mistake, bool narrow);

}  // namespace attest
