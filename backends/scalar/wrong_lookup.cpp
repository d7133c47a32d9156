#include "backends/scalar/wrong_lookup.hpp"

#include <algorithm>

namespace attest {
namespace {

/// The token whose V a kernel takes for this one's.
std::int64_t token_of_v(const RequestShape& s, std::int64_t token, Fault fault) {
  switch (fault) {
    case Fault::v_block_of_v_dims:
      // Modelled: K's tiles hold as many keys as K has dimensions for, V's as V has.
      return std::min(token / 64 * s.v_tile + token % 64, s.length - 1);
    case Fault::v_page_one_step_late:
      return token < s.page_size ? token : token - s.page_size;
    case Fault::v_second_half_repeats_the_first:
      // Modelled: two loads of V a tile, and page ids that advance once.
      return token % 64 < 32 ? token : token - 32;
    case Fault::v_pairs_swapped:
      return (token ^ 1) < s.length ? token ^ 1 : token;
    default:
      return token;
  }
}

/// Visible ancestors of new token t, itself included.
std::int64_t depth_of(std::span<const std::int64_t> square, std::int64_t rows, std::int64_t t) {
  const auto row =
      square.subspan(static_cast<std::size_t>(t * rows), static_cast<std::size_t>(rows));
  return std::count_if(row.begin(), row.end(), [](std::int64_t bit) { return bit != 0; });
}

}  // namespace

TablePlace table_place(std::int64_t request, std::int64_t token, std::int64_t page_size,
                       Fault fault) {
  TablePlace place = list_place(token, page_size, fault);
  place.row = request;
  if (fault == Fault::stale_page && place.column == 0 && request > 0) place.row = request - 1;
  if (fault == Fault::request_index_dropped) place.row = 0;
  return place;
}

TablePlace list_place(std::int64_t token, std::int64_t page_size, Fault fault) {
  const bool before = fault == Fault::page_of_the_token_before && token > 0;
  TablePlace place{.column = (before ? token - 1 : token) / page_size};
  if (fault == Fault::four_page_ids_reused) place.column %= 4;
  if (fault == Fault::odd_page_behind_the_even_one) {
    place.behind = place.column % 2;
    place.column -= place.behind;
  }
  return place;
}

std::int64_t v_tile_of(const Operands& op) {
  return 64 * op.v_head_dim / std::max<std::int64_t>(op.head_dim, 1);
}

KeyRow with_wrong_v(const RequestShape& shape, std::int64_t token, Fault fault,
                    const std::function<KeyRow(std::int64_t token)>& lookup) {
  KeyRow key = lookup(token);
  const std::int64_t of_v = token_of_v(shape, token, fault);
  if (of_v == token) return key;
  const KeyRow other = lookup(of_v);
  // The pool's rows and the new ones are packed apart.
  if (other.fresh == key.fresh) key.v = other.v;
  return key;
}

std::vector<std::int64_t> misread_mask(std::span<const std::int64_t> square, std::int64_t rows,
                                       Fault fault) {
  const bool late = fault == Fault::mask_read_one_entry_late;
  const bool deep = fault == Fault::tree_seen_by_depth;
  if (!late && !deep && fault != Fault::mask_not_read_before_the_block) return {};
  std::vector<std::int64_t> read(square.begin(), square.end());
  if (late) {
    std::rotate(read.begin(), read.begin() + (read.empty() ? 0 : 1), read.end());
    return read;
  }
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t u = 0; u < rows; ++u) {
      std::int64_t& entry = read[static_cast<std::size_t>(t * rows + u)];
      const auto less_deep = [&] { return depth_of(square, rows, u) < depth_of(square, rows, t); };
      if (deep) entry = u == t || less_deep() ? 1 : 0;
      // Modelled: keys that end before a block's first row lie below its diagonal.
      if (!deep && u < t / 4 * 4) entry = 1;
    }
  }
  return read;
}

}  // namespace attest
