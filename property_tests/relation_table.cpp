#include <string>

#include "property_tests/relations.hpp"

namespace attest {
namespace {

using enum Holds;

constexpr std::string_view splits_merge = "merging splits adds a rounding each";
constexpr std::string_view batch_chooses_the_blocks =
    "the longest request and the batch choose the rows of a block and the splits";
constexpr std::string_view tiles_follow_the_window =
    "its tiles start at the row's first key, so under a window other keys share one";

// Which relation holds how far on which kernel. A relation that is absent says nothing about that
// signature.
constexpr Declaration declarations[] = {
    {"page_renaming", "scalar.unified"},
    {"page_renaming", "scalar.extend"},
    {"page_renaming", "scalar.decode"},
    {"page_renaming", "scalar.mla_decode"},
    {"page_renaming", "amx.extend"},
    {"page_renaming", "amx.decode"},
    {"page_renaming", "hip.unified"},
    {"page_renaming", "hip.mla_decode"},
    {"pool_growth", "scalar.unified"},
    {"pool_growth", "scalar.extend"},
    {"pool_growth", "scalar.decode"},
    {"pool_growth", "scalar.mla_decode"},
    {"pool_growth", "amx.extend"},
    {"pool_growth", "amx.decode"},
    {"pool_growth", "hip.unified"},
    {"pool_growth", "hip.mla_decode"},
    {"wider_table", "scalar.unified"},
    {"wider_table", "scalar.extend"},
    {"wider_table", "scalar.decode"},
    {"wider_table", "scalar.mla_decode"},
    {"wider_table", "amx.extend"},
    {"wider_table", "amx.decode"},
    {"wider_table", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"wider_table", "hip.mla_decode", within_bound, batch_chooses_the_blocks},
    {"poison", "scalar.unified"},
    {"poison", "scalar.extend"},
    {"poison", "scalar.decode"},
    {"poison", "scalar.mla_decode"},
    {"poison", "amx.extend"},
    {"poison", "amx.decode"},
    {"poison", "hip.unified"},
    {"poison", "hip.mla_decode"},
    {"expanded_kv_heads", "scalar.unified"},
    {"expanded_kv_heads", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"index_dtype", "scalar.unified"},
    {"index_dtype", "scalar.extend"},
    {"index_dtype", "scalar.decode"},
    {"index_dtype", "amx.extend"},
    {"index_dtype", "amx.decode"},
    {"index_dtype", "hip.unified"},
    {"batch_permutation", "scalar.unified"},
    {"batch_permutation", "scalar.extend"},
    {"batch_permutation", "scalar.decode"},
    {"batch_permutation", "scalar.mla_decode"},
    {"batch_permutation", "amx.extend"},
    {"batch_permutation", "amx.decode"},
    {"batch_permutation", "hip.unified"},
    {"batch_permutation", "hip.mla_decode"},
    {"request_alone", "scalar.unified"},
    {"request_alone", "scalar.extend"},
    {"request_alone", "scalar.decode"},
    {"request_alone", "scalar.mla_decode"},
    {"request_alone", "amx.extend"},
    {"request_alone", "amx.decode"},
    {"request_alone", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"request_alone", "hip.mla_decode", within_bound, batch_chooses_the_blocks},
    {"padding_rows", "scalar.unified"},
    {"padding_rows", "scalar.extend"},
    {"padding_rows", "scalar.decode"},
    {"padding_rows", "scalar.mla_decode"},
    {"padding_rows", "amx.extend"},
    {"padding_rows", "amx.decode"},
    {"padding_rows", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"padding_rows", "hip.mla_decode", within_bound, batch_chooses_the_blocks},
    {"head_group_alone", "scalar.unified"},
    {"head_group_alone", "scalar.extend"},
    {"head_group_alone", "scalar.decode"},
    {"head_group_alone", "amx.extend"},
    {"head_group_alone", "amx.decode"},
    {"head_group_alone", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"run_twice", "scalar.unified"},
    {"run_twice", "scalar.extend"},
    {"run_twice", "scalar.decode"},
    {"run_twice", "scalar.mla_decode"},
    {"run_twice", "amx.extend"},
    {"run_twice", "amx.decode"},
    {"run_twice", "hip.unified"},
    {"run_twice", "hip.mla_decode"},
    {"thread_count", "scalar.unified"},
    {"thread_count", "scalar.extend"},
    {"thread_count", "scalar.decode"},
    {"thread_count", "scalar.mla_decode"},
    {"thread_count", "amx.extend"},
    {"thread_count", "amx.decode"},
    {"thread_count", "hip.unified"},
    {"thread_count", "hip.mla_decode"},
    {"split_count", "scalar.unified", within_bound, splits_merge},
    {"split_count", "scalar.decode", within_bound, splits_merge},
    {"split_count", "scalar.mla_decode", within_bound, splits_merge},
    {"split_count", "amx.decode", within_bound, splits_merge},
    {"split_count", "hip.unified", within_bound, splits_merge},
    {"split_count", "hip.mla_decode", within_bound, splits_merge},
    {"chunk_split", "scalar.unified"},
    {"chunk_split", "scalar.extend"},
    {"chunk_split", "amx.extend"},
    {"chunk_split", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"chunk_split_windowed", "scalar.unified", within_bound, tiles_follow_the_window},
    {"chunk_split_windowed", "scalar.extend", within_bound, tiles_follow_the_window},
    {"chunk_split_windowed", "amx.extend"},
    {"chunk_split_windowed", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"window_of_everything", "scalar.unified"},
    {"window_of_everything", "scalar.extend"},
    {"window_of_everything", "scalar.decode"},
    {"window_of_everything", "amx.extend"},
    {"window_of_everything", "amx.decode"},
    {"window_of_everything", "hip.unified"},
    {"chain_mask", "scalar.extend"},
    {"chain_mask", "amx.extend"},
    {"descale_moved_to_the_scale", "scalar.unified"},
    {"descale_moved_to_the_scale", "hip.unified"},
    {"decode_steps", "scalar.unified"},
    {"decode_steps", "scalar.mla_decode"},
    {"decode_steps", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"decode_steps", "hip.mla_decode", within_bound, batch_chooses_the_blocks},
    {"decode_steps_windowed", "scalar.unified", within_bound, tiles_follow_the_window},
    {"decode_steps_windowed", "hip.unified", within_bound, batch_chooses_the_blocks},
    {"verify_equals_decode", "scalar.extend"},
    {"verify_equals_decode", "amx.extend"},
    {"verify_equals_decode_windowed", "scalar.extend", within_bound, tiles_follow_the_window},
    {"verify_equals_decode_windowed", "amx.extend"},
    {"verify_equals_split_decode", "scalar.extend", within_bound, splits_merge},
    {"verify_equals_split_decode", "amx.extend", within_bound, splits_merge},
    {"graph_replays_longer", "hip.unified"},
    {"graph_replays_longer", "hip.mla_decode"},
    {"graph_replays_shorter", "hip.unified"},
    {"graph_replays_shorter", "hip.mla_decode"},
    {"graph_replays_padded", "hip.unified"},
    {"graph_replays_padded", "hip.mla_decode"},
    {"graph_after_eager", "hip.unified"},
    {"graph_after_eager", "hip.mla_decode"},
    {"graph_lengths_inside", "hip.unified"},
};

}  // namespace

std::span<const Declaration> all_declarations() { return declarations; }

const Declaration* declared(const Relation& relation, const Backend& backend) {
  const BackendName name = split_backend_name(backend.name());
  const std::string kernel = name.implementation + "." + name.signature;
  for (const Declaration& one : declarations) {
    if (one.relation == relation.id && one.backend == kernel) return &one;
  }
  return nullptr;
}

}  // namespace attest
