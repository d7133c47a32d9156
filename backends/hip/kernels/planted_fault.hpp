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
  // Which keys a row sees.
  causal_one_too_long,
  causal_one_too_short,
  window_one_too_long,
  window_one_too_short,
  window_prunes_one_tile_more,
  reads_to_the_end_of_the_page,
  // The softmax and the merges.
  masked_tile_floors_maximum,
  softcap_overflows,
  groups_not_rescaled,
  splits_not_rescaled,
  last_split_dropped,
  sink_in_every_split,
  sink_missing,
  // Rows.
  packing_starts_at_head_0,
  padding_rows_written,
};

}  // namespace attest::hip
