#include "property_tests/mutants/later_mutants.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace attest {
namespace {

constexpr LaterMutant rows[] = {
    {"faulty-window_from_the_first_row",
     "all rows of a request see from where the first row's window begins"},
    {"faulty-window_not_among_new_tokens", "the window hides no new token from another"},
    {"faulty-causal_in_blocks_of_four",
     "rows see later new tokens, up to the end of their block of four"},
    {"faulty-mask_bytes_reused", "drafts see wrong drafts: columns of the mask repeat after eight"},
    {"faulty-mask_row_stride_without_new",
     "drafts see wrong drafts: rows of the mask are read too close together"},
    {"faulty-page_size_taken_as_16", "keys are looked up as if a page held 16 tokens"},
    {"faulty-page_id_in_16_bits", "page ids lose their upper bits, so other pages are read"},
    {"faulty-page_lists_at_a_fixed_stride", "later requests' lists begin at a wrong entry"},
    {"faulty-v_addressed_with_ks_strides", "V, and V alone, comes from a wrong place"},
    {"faulty-heads_taken_as_dense", "kv heads after the first are read from a wrong place"},
    {"faulty-group_from_the_kv_heads", "query heads read a kv head that is not their group's"},
    {"faulty-page_of_the_token_before", "the first key of a page is another page's"},
    {"faulty-maximum_starts_at_zero", ""},
    {"faulty-p_in_v_dtype", ""},
    {"faulty-scores_in_bf16", ""},
    {"faulty-q_scaled_in_its_own_type", ""},
    {"faulty-cap_before_the_scale", ""},
    {"faulty-tile_padding_capped", ""},
    {"faulty-sink_scaled", ""},
    {"faulty-k_descale_twice", ""},
    {"faulty-split_weights_in_base_2", ""},
    {"faulty-split_outputs_in_bf16", ""},
    {"faulty-v_descale_in_every_split", ""},
    {"faulty-tile_in_two_splits", "64 keys at a split's edge count twice"},
    {"faulty-lse_of_the_last_split", ""},
    {"faulty-single_v_row_dropped",
     "V of a block's last key, where their number is odd, counts as zero"},
    {"faulty-head_dim_tail_dropped", ""},
    {"faulty-window_edge_not_hidden", "keys before the window count as zeros"},
    {"faulty-sink_of_the_head_in_its_group", ""},
    {"faulty-mask_row_is_the_packed_row", "drafts are masked with other drafts' rows"},
    {"faulty-row_ends_in_another_order", "rows end at other tokens' keys"},
    {"faulty-stored_after_attention", "the newest key is read before it is stored"},
    {"faulty-packs_shared_across_heads", "kv heads read another kv head's keys"},
    {"faulty-hip_window_of_the_blocks_first_row",
     "rows see from where the window of their block's first row begins"},
    {"faulty-hip_causal_of_the_blocks_last_row",
     "rows see later new tokens, up to the last of their block"},
    {"faulty-hip_window_edge_seen_as_whole",
     "keys before the window, in the tile that it begins in, are seen"},
    {"faulty-hip_one_table_entry_a_tile",
     "a tile's later pages are read from its first key's page"},
    {"faulty-hip_table_rows_packed", "later requests read the table from a wrong cell on"},
    {"faulty-hip_v_of_the_other_stage", "V comes from another tile's keys"},
    {"faulty-hip_small_rescale_left_out", ""},
    {"faulty-hip_sum_of_one_group", ""},
    {"faulty-hip_sink_in_empty_splits", ""},
    {"metadata:block_table_holds_token_slots", "slots are read as page ids"},
    {"metadata:table_names_a_freed_page", "a request's first page is nobody's"},
    {"metadata:pool_rows_of_batch_positions", "requests read other requests' rows of the table"},
    {"metadata:kv_indices_tail_not_filled", "the newest entries of a list all name page 0"},
    {"metadata:surplus_page_at_a_boundary", "a list has one page too many"},
    {"metadata:kv_indptr_counts_pages",
     "lists are shorter by the page size, and later ones begin too early"},
    {"metadata:new_keys_listed_in_the_pool", "new keys are seen twice"},
    {"metadata:chunk_counts_the_whole_prompt",
     "the length counts as many keys too many as there are new ones"},
    {"metadata:lengths_in_another_order", "requests have one another's lengths"},
    {"metadata:offsets_of_padded_rows", "rows belong to other tokens: offsets are evenly spaced"},
    {"metadata:encoder_lens_of_the_longest",
     "encoders count too many tokens, so text begins too late"},
    {"metadata:partitions_of_a_shorter_step", "keys behind the last partition are not visited"},
    {"metadata:max_seqlen_k_of_the_capture", "there is no window"},
    {"metadata:window_of_another_layer", "there is a window where the layer has none"},
    {"metadata:causal_not_passed", "new tokens see all new tokens"},
    {"metadata:tree_mask_shows_parents_only", "drafts do not see ancestors before their parent"},
    {"metadata:mask_offsets_of_square_masks", "later requests' masks are read from a wrong entry"},
    {"metadata:scale_applied_twice", "the scale is not the layer's: squared"},
    {"metadata:v_scale_not_passed", "V's factor is missing"},
};

}  // namespace

std::span<const LaterMutant> later_mutants() {
  static const std::vector<LaterMutant> both = [] {
    std::vector<LaterMutant> list(std::begin(rows), std::end(rows));
    const auto second = second_later_mutants();
    list.insert(list.end(), second.begin(), second.end());
    return list;
  }();
  return both;
}

const LaterMutant* later_mutant(std::string_view name) {
  const std::string_view stem = name.substr(0, name.find('.'));
  const auto both = later_mutants();
  const auto at = std::find_if(both.begin(), both.end(),
                               [&](const LaterMutant& row) { return row.name == stem; });
  return at == both.end() ? nullptr : &*at;
}

}  // namespace attest
