#include "backends/scalar/row_group.hpp"

#include <algorithm>
#include <limits>

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
  const std::int64_t row = fault == Fault::window_from_the_first_row ? 0 : r;
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
                          .tree_begin = prefix});
    if (seen.begin == seen.end) continue;
    low = std::min(low, seen.begin);
    high = std::max(high, seen.end);
  }
  // Modelled: V of a whole tile is loaded, and meets a weight of 0 before the window.
  if (fault == Fault::v_before_the_window_read && low < high) low = low / 64 * 64;
  for (std::int64_t key = low; key < high; ++key) {
    group.keys.push_back(lookup(key < prefix ? key : key + skipped));
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

}  // namespace attest
