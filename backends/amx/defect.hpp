#pragma once

namespace attest::amx {

/// Defects of the production kernels of these signatures, each put into our kernel at the place
/// where it sits in theirs, and mistakes of the kind that a kernel like ours invites; `none` is the
/// honest kernel. What each one does and how it shows: the table in faulty/amx_faults.cpp. Asked
/// for once per launch, item or key block, never per element.
enum class Defect {
  none,
  logit_cap_ignored,
  slot_offset_in_int32,
  rows_past_max_len_skipped,
  window_overwrites_encoder,
  mask_cut_at_the_row_block,
  scratch_of_the_last_item,
  probabilities_read_at_the_padded_width,
  nan_key_dropped,
  hidden_row_is_nan,
  f16_as_bf16,
  cross_attention_takes_seq_lens,
  output_taken_as_contiguous,
  rows_past_the_batch_skipped,
  left_over_heads_skipped,
  single_v_row_dropped,
  head_dim_tail_dropped,
  window_edge_not_hidden,
  sink_of_the_head_in_its_group,
  mask_row_is_the_packed_row,
  row_ends_in_another_order,
  stored_after_attention,
  packs_shared_across_heads,
};

}  // namespace attest::amx
