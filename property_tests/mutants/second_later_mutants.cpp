// The second batch. What a diagnosis must say was written down before any of it had run.

#include "property_tests/mutants/later_mutants.hpp"

namespace attest {
namespace {

constexpr int second = 2;

constexpr LaterMutant rows[] = {
    // Where a key, a value or a query is looked up.
    {"faulty-request_index_dropped", "requests read the first request's keys", second},
    {"faulty-odd_page_behind_the_even_one",
     "every second page is not the one that the table names, but the one behind the page before it",
     second},
    {"faulty-table_not_consulted", "the table is not used: pages are read in the pool's order",
     second},
    {"faulty-four_page_ids_reused",
     "keys behind the fourth page are read from a request's first four pages", second},
    {"faulty-first_row_of_the_request_before",
     "a request's first row sees the keys of the request before", second},
    {"faulty-kv_head_is_the_q_head",
     "query heads read a kv head that is not their group's: the one of their own number", second},
    {"faulty-k_head_stride_zero", "K, and K alone, comes from another kv head: the first", second},
    {"faulty-q_rows_before_heads", "rows have another row's or another head's query", second},
    {"faulty-new_keys_from_row_zero",
     "later requests see the first rows' new tokens in place of their own", second},
    {"faulty-latent_v_behind_the_rope",
     "V, and V alone, comes from a wrong place: another part of the row", second},
    {"faulty-v_block_of_v_dims", "V, and V alone, comes from other keys, behind the first tile",
     second},
    {"faulty-v_page_one_step_late", "V, and V alone, comes from the page before", second},
    {"faulty-v_second_half_repeats_the_first",
     "V, and V alone, of half of the keys comes from other keys, 32 before", second},
    {"faulty-v_pairs_swapped", "V, and V alone, comes from a neighbouring key", second},
    // Which keys a row sees.
    {"faulty-row_number_over_the_group",
     "rows behind the first end too early, more so the later they are", second},
    {"faulty-causal_from_the_longest_request",
     "rows of shorter requests end too early, by what they are shorter", second},
    {"faulty-own_key_missing_past_16_rows", "rows behind the first 16 do not see their own key",
     second},
    {"faulty-window_of_the_last_row",
     "rows see from where the last row's window begins: too little", second},
    {"faulty-window_of_row_numbers",
     "the window begins too early: the committed keys do not count in a row's position", second},
    {"faulty-full_last_page_is_empty", "the last page is not seen where it is full", second},
    {"faulty-pages_of_16_in_tiles_of_32", "the second half of the keys is not seen", second},
    {"faulty-prefix_tail_dropped",
     "the last committed keys are not seen, those behind a multiple of 32; new ones are", second},
    {"faulty-split_remainder_lost",
     "the last keys are not seen: those that splits of one size leave over", second},
    {"faulty-tail_places_score_zero", "places behind the last key count as keys of zeros", second},
    {"faulty-mask_not_read_before_the_block",
     "drafts see drafts before their block of four that are no ancestors", second},
    {"faulty-mask_read_one_entry_late",
     "drafts see wrong drafts: the mask is read one entry too late", second},
    {"faulty-mask_begins_at_the_tile",
     "the mask hides committed keys and not the drafts: its columns begin too early", second},
    {"faulty-tree_seen_by_depth", "drafts see drafts of other branches that are less deep", second},
    // The softmax, the factors, the merge of the splits.
    {"faulty-cap_times_the_score", "", second},
    {"faulty-half_not_rescaled", "", second},
    {"faulty-sum_in_bf16", "", second},
    {"faulty-v_descale_inverted", "", second},
    {"faulty-sink_not_shifted", "", second},
    {"faulty-split_maxima_in_bf16", "", second},
    // What a framework passes.
    {"metadata:table_without_the_evicted_pages",
     "a windowed request's keys are looked up some columns too late in its table", second},
    {"metadata:pages_of_the_prefix_last",
     "a request's pages are in another order: its last one is not the last", second},
    {"metadata:branches_read_each_others_drafts",
     "drafts read the draft keys of another branch of their request", second},
    {"metadata:lists_in_another_order", "requests read one another's lists", second},
    {"metadata:seq_lens_include_the_encoder",
     "the length counts as many keys too many as the encoder has", second},
    {"metadata:mask_before_the_reordering",
     "drafts are masked with a neighbouring draft's row and column", second},
};

}  // namespace

std::span<const LaterMutant> second_later_mutants() { return rows; }

}  // namespace attest
