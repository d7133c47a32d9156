#include "backends/scalar/row_group.hpp"

#include <algorithm>
#include <limits>

#include "backends/scalar/wrong_lookup.hpp"

namespace attest {
namespace {

std::int64_t causal_end(const RequestShape& s, std::int64_t r, Fault fault) {
  const std::int64_t position = s.length - s.rows + r;
  const bool reads_on =
      fault == Fault::reads_past_kv_len || fault == Fault::reads_past_kv_len_drops_nan;
  switch (fault) {
    case Fault::causal_one_too_long:
      return std::min(position + 2, s.length);
    case Fault::causal_one_too_short:
      return position;
    case Fault::causal_top_left:
      return r + 1;
    case Fault::rows_end_with_the_first:
      return position - r + 1;
    case Fault::row_number_over_the_group:
      return position - r + r / s.q_heads_per_kv + 1;
    case Fault::causal_from_the_longest_request:
      return s.length - std::max(s.longest_rows, s.rows) + r + 1;
    case Fault::own_key_missing_past_16_rows:
      return position + (r < 16 ? 1 : 0);
    case Fault::causal_in_blocks_of_four:
      return std::min(s.length, s.length - s.rows + (r / 4 + 1) * 4);
    case Fault::causal_none_among_new_tokens:
    case Fault::context_is_total_length:
      return s.length;
    default:
      break;
  }
  if (reads_on && position + 1 == s.length) {
    return (s.length + s.page_size - 1) / s.page_size * s.page_size;
  }
  return position + 1;
}

std::int64_t tree_end(const RequestShape& s, std::int64_t r, Fault fault) {
  // Modelled: bits past the mask's end read as ones, so the columns that pad its tile are visible.
  if (fault == Fault::mask_padding_visible) return (s.length + 15) / 16 * 16;
  return std::min(s.length, s.length - s.rows + (r / s.tree_block + 1) * s.tree_block);
}

std::int64_t window_begin(const RequestShape& s, std::int64_t r, Fault fault) {
  std::int64_t window = s.window;
  if (window <= 0 || fault == Fault::window_ignored) return 0;
  if (fault == Fault::window_one_too_long) ++window;
  if (fault == Fault::window_one_too_short) --window;
  const std::int64_t context =
      fault == Fault::context_is_total_length ? s.length : s.length - s.rows;
  if (fault == Fault::window_of_row_numbers) return r - window + 1;
  std::int64_t row = fault == Fault::window_from_the_first_row ? 0 : r;
  if (fault == Fault::window_of_the_last_row) row = s.rows - 1;
  const std::int64_t first = context + row - window + 1;
  if (fault == Fault::window_not_among_new_tokens) return std::min(first, context);
  if (fault != Fault::window_floored_to_pages) return first;
  const std::int64_t pages = std::max<std::int64_t>(1, window / s.page_size);
  const std::int64_t used = (s.length + s.page_size - 1) / s.page_size;
  return std::max(first, (used - pages) * s.page_size);
}

/// Keys from here on are not visited, whoever sees them.
std::int64_t walked_end(const RequestShape& s, Fault fault) {
  if (fault == Fault::last_partial_tile_dropped) return s.length / 64 * 64;
  if (fault == Fault::keys_past_16k_ignored) return 256 * 64;
  if (fault == Fault::full_last_page_is_empty && s.page_size > 1 && s.length % s.page_size == 0) {
    return s.length - s.page_size;
  }
  // Modelled: a page of 16 fills half a tile, and tiles are counted as if it filled one.
  if (fault == Fault::pages_of_16_in_tiles_of_32 && s.page_size == 16) {
    return (s.length + 31) / 32 * 16;
  }
  return s.visited;
}

/// Modelled on a prefix computed as length - 2 * rows: the newest keys before the rows are skipped.
std::int64_t skipped_prefix(const RequestShape& s, Fault fault) {
  if (fault != Fault::prefix_short_by_new_tokens || !s.causal) return 0;
  return std::clamp<std::int64_t>(s.length - s.rows, 0, s.rows);
}

std::span<const std::int64_t> tree_row(const RequestShape& s, std::int64_t r, Fault fault) {
  if (s.tree.empty() || fault == Fault::tree_mask_ignored) return {};
  return s.tree.subspan(static_cast<std::size_t>(r * s.rows), static_cast<std::size_t>(s.rows));
}

/// Modelled: the mask's columns are counted from the tile that the prefix ends in.
std::int64_t tree_begin(std::int64_t prefix, Fault fault) {
  return fault == Fault::mask_begins_at_the_tile ? prefix / 64 * 64 : prefix;
}

/// Modelled: whole blocks of 32 committed keys are walked, and what they leave over is not.
bool is_dropped(std::int64_t key, std::int64_t prefix, Fault fault) {
  return fault == Fault::prefix_tail_dropped && key >= prefix / 32 * 32 && key < prefix;
}

}  // namespace

Seen seen_by(const RequestShape& s, std::int64_t r, Fault fault) {
  Seen seen{window_begin(s, r, fault), s.length};
  if (s.causal) {
    const bool tree = !s.tree.empty() && fault != Fault::tree_mask_ignored;
    seen.end = tree ? tree_end(s, r, fault) : causal_end(s, r, fault);
  }
  seen.end = std::min(seen.end, walked_end(s, fault));
  seen.begin = std::max<std::int64_t>(seen.begin, fault == Fault::first_key_ignored ? 1 : 0);
  seen.end = std::max(seen.begin, seen.end);
  return seen;
}

RowGroup make_group(RequestShape shape, std::int64_t row_limit, Fault fault,
                    const std::function<KeyRow(std::int64_t token)>& lookup) {
  const std::int64_t skipped = skipped_prefix(shape, fault);
  shape.length -= skipped;
  const std::int64_t prefix = shape.length - shape.rows;

  RowGroup group;
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = 0;
  const std::int64_t first = std::max<std::int64_t>(0, -shape.first_row);
  const std::int64_t last =
      std::min({shape.rows, shape.computed_rows, row_limit - shape.first_row});
  for (std::int64_t r = first; r < last; ++r) {
    const Seen seen = seen_by(shape, r, fault);
    group.rows.push_back({.row = shape.first_row + r,
                          .begin = seen.begin,
                          .end = seen.end,
                          .tree = tree_row(shape, r, fault),
                          .tree_begin = tree_begin(prefix, fault)});
    if (seen.begin == seen.end) continue;
    low = std::min(low, seen.begin);
    high = std::max(high, seen.end);
  }
  // Modelled: V of a whole tile is loaded, and meets a weight of 0 before the window.
  if (fault == Fault::v_before_the_window_read && low < high) low = low / 64 * 64;
  for (std::int64_t key = low; key < high; ++key) {
    const std::int64_t token = key < prefix ? key : key + skipped;
    group.keys.push_back(with_wrong_v(shape, token, fault, lookup));
    if (is_dropped(key, prefix, fault)) group.keys.back().absent = true;
  }
  for (QueryRow& row : group.rows) {
    if (row.begin == row.end) {
      row.begin = row.end = 0;
      continue;
    }
    row.begin -= low;
    row.end -= low;
    row.tree_begin -= low;
  }
  return group;
}

RequestShape first_row_taken_out(RequestShape& shape, const RequestShape& before) {
  RequestShape row = before;
  row.first_row = shape.first_row;
  row.rows = 0;
  if (shape.rows < 2 || before.length < 1) return row;
  row.rows = 1;
  ++shape.first_row;
  --shape.rows;
  return row;
}

}  // namespace attest
