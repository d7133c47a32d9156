#include <algorithm>
#include <iterator>

#include "contracts/slot_map.hpp"
#include "property_tests/mutants/mutant_cases.hpp"

namespace attest {
namespace {

/// Room behind the slots of every page.
void roomy_pages(Case& c) {
  Pool& pool = c.problem.pool;
  const Model& m = c.problem.model;
  pool.k = pool.v = {};
  pool.k.page = pool.page_size * m.num_kv_heads * m.head_dim + 128;
}

void nan_in_v_tail(Case& c) { c.poison.nan_in_v_tail = true; }

/// Logits that lie far from zero and apart.
void steep_logits(Case& c) { c.problem.model.softmax_scale = 30; }

void low_logits(Case& c) {
  for (Request& r : c.problem.requests) {
    r.committed = 0;
    r.shared_prefix = 0;
  }
  c.problem.pool.slots.clear();
  c.problem.context_len = 0;
  steep_logits(c);
}

void beyond_the_cap(Case& c) {
  c.problem.model.softcap = 5;
  c.problem.model.softmax_scale = 300;
  c.recipe = Recipe::features;
}

/// Slots whose length 16 bytes do not divide.
void odd_pitch(Case& c) {
  Model& m = c.problem.model;
  if (!m.mla) m.head_dim = m.v_head_dim = 46;
  c.problem.pool.k = c.problem.pool.v = {};
}

void maximum_of_an_earlier_step(Call& call) {
  if (auto* const unified = std::get_if<UnifiedCall>(&call)) unified->max_seqlen_k = 1;
}

/// Pages of 16 tokens, some of nobody, and a window that begins inside a tile.
void small_pages(Case& c) {
  Problem& p = c.problem;
  p.model.window = 41;
  p.pool.slots.clear();
  p.pool.k = p.pool.v = {};
  p.pool.page_size = 16;
  for (Request& r : p.requests) r.committed += 100;
  p.pool.num_pages = pages_needed(p) + 8;
  p.context_len = 0;
}

/// A page that no cell of the table names.
std::int64_t unreferenced_page(const UnifiedCall& call) {
  const auto& cells = call.block_table.values;
  std::int64_t page = 0;
  while (std::find(cells.begin(), cells.end(), page) != cells.end()) ++page;
  return page;
}

/// Cells before every window name a page of nobody, as one that was given back is.
void give_back_old_pages(Call& call) {
  auto* const c = std::get_if<UnifiedCall>(&call);
  if (c == nullptr) return;
  const std::int64_t nobodys = unreferenced_page(*c);
  if (nobodys >= c->k.size(0)) return;
  for (std::size_t i = 0; i < c->seqused_k.values.size(); ++i) {
    const std::int64_t rows = c->cu_seqlens_q.values[i + 1] - c->cu_seqlens_q.values[i];
    const std::int64_t first = c->seqused_k.values[i] - rows - c->window_size[0];
    for (std::int64_t column = 0; column < first / c->k.size(1); ++column) {
      const std::int64_t at = static_cast<std::int64_t>(i) * c->block_table.size(1) + column;
      c->block_table.values[static_cast<std::size_t>(at)] = nobodys;
    }
  }
}

/// A table as wide as the longest request needs, without the room up to the end of a tile.
void cut_the_table(Call& call) {
  auto* const c = std::get_if<UnifiedCall>(&call);
  if (c == nullptr) return;
  std::int64_t longest = 1;
  for (const std::int64_t length : c->seqused_k.values) longest = std::max(longest, length);
  const std::int64_t page = c->k.size(1);
  const std::int64_t width = std::min((longest + page - 1) / page, c->block_table.size(1));
  IntArray table;
  table.meta = contiguous(c->block_table.meta.dtype, {c->block_table.size(0), width});
  for (std::int64_t row = 0; row < c->block_table.size(0); ++row) {
    const auto first =
        c->block_table.values.begin() + static_cast<std::ptrdiff_t>(row * c->block_table.size(1));
    table.values.insert(table.values.end(), first, first + static_cast<std::ptrdiff_t>(width));
  }
  c->block_table = std::move(table);
}

constexpr Preparation preparations[] = {
    {.part = "_in_seqused_dtype.", .large_pool = true, .narrow_indices = true},
    {.part = "slot_offset_in_table_dtype.", .large_pool = true, .narrow_indices = true},
    {.part = "slot_offset_in_int32.", .large_pool = true, .narrow_indices = true},
    {.part = "_in_index_dtype.", .large_pool = true, .narrow_indices = true},
    {.part = "faulty-wrap-", .large_pool = true},
    {.part = "zeros_past_2_gib.", .large_pool = true},
    {.part = "aliases_past_4_gib.", .large_pool = true},
    {.part = "descriptor_size_in_32_bits.", .large_pool = true},
    {.part = "store_offset_in_int32.", .large_pool = true},
    {.part = "page_id_in_16_bits.", .large_pool = true},
    {.part = "_elements_int32.", .large_pool = true},
    {.part = "_bytes_int32.", .large_pool = true},
    {.part = "_bytes_uint32.", .large_pool = true},
    {.part = "far_keys_read_zero.", .large_pool = true},
    {.part = "table_read_to_the_tiles_end.", .call = cut_the_table},
    {.part = "v_before_the_window_read.", .problem = small_pages, .call = give_back_old_pages},
    {.part = "rows_past_max_len_skipped.", .fault = "max_len_extend_too_small"},
    {.part = "window_overwrites_encoder.", .fault = "window_beside_an_encoder"},
    {.part = "cross_attention_takes_seq_lens.", .fault = "encoder_lens_missing"},
    {.part = "output_taken_as_contiguous.", .fault = "output_transposed"},
    {.part = "int64_offsets_read_as_int32.", .fault = "mla_kv_indptr_int64"},
    {.part = "hip_page_stride_assumed.", .problem = roomy_pages},
    {.part = "hip_v_loaded_to_the_end_of_the_page.", .problem = nan_in_v_tail},
    {.part = "hip_bounded_by_the_maximum.", .call = maximum_of_an_earlier_step},
    {.part = "hip_masked_tile_floors_maximum.", .problem = low_logits},
    {.part = "hip_maximum_of_one_tile.", .problem = steep_logits},
    {.part = "hip_softcap_overflows.", .problem = beyond_the_cap},
    {.part = "store_rounded_to_16_bytes.", .problem = odd_pitch},
};

}  // namespace

const Preparation* preparation_of(const Mutant& mutant) {
  const auto* const at = std::find_if(
      std::begin(preparations), std::end(preparations),
      [&](const Preparation& one) { return mutant.name.find(one.part) != std::string::npos; });
  return at == std::end(preparations) ? nullptr : at;
}

}  // namespace attest
