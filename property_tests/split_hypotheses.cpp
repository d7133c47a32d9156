#include <algorithm>
#include <array>

#include "property_tests/diagnose.hpp"
#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

constexpr std::int64_t tile = 64;

/// Whether tiles are counted from key 0 or from the first key that a row of the request sees.
enum class From { zero, window };

/// How the keys of a request are dealt to splits of whole tiles: [base + i * keys, + keys).
struct Splits {
  std::int64_t base = 0, keys = tile;
  std::int64_t of(std::int64_t position) const { return (position - base) / keys; }
  std::int64_t begin(std::int64_t split) const { return base + split * keys; }
};

std::int64_t first_key(const Problem& p, const Request& r) {
  return p.model.window ? std::max<std::int64_t>(0, r.committed - *p.model.window + 1) : 0;
}

std::int64_t base_of(const Problem& p, const Request& r, From from) {
  const std::int64_t first = first_key(p, r);
  return from == From::window ? first : first / tile * tile;
}

Splits splits_of(const Problem& p, const Request& r, std::int64_t count, From from) {
  const std::int64_t base = base_of(p, r, from);
  const std::int64_t tiles = (r.kv_len() - base + tile - 1) / tile;
  return {base, std::max<std::int64_t>(1, (tiles + count - 1) / count) * tile};
}

/// What a row sees ends with what its last split begins with; a row of one split keeps it.
template <std::int64_t count, From from>
bool last_split_missing(const Problem& p, Attended& m) {
  return see_positions(p, m,
                       [&](const Request& r, std::int64_t, std::int64_t&, std::int64_t& last) {
                         const Splits splits = splits_of(p, r, count, from);
                         const std::int64_t split = splits.of(last - 1);
                         if (split > 0) last = splits.begin(split);
                       });
}

template <std::int64_t count, From from>
bool first_tile_of_later_splits_missing(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    if (p.model.cross_attention) return;
    const Splits splits = splits_of(p, r, count, from);
    for (std::int64_t split = 1; splits.begin(split) < r.kv_len(); ++split) {
      drop_positions(keys, splits.begin(split), splits.begin(split) + tile);
    }
  });
}

/// The first tile of the second of two splits is the first one's too.
template <From from>
bool first_tile_of_the_second_split_twice(const Problem& p, Attended& m) {
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    if (p.model.cross_attention) return;
    const std::int64_t begin = splits_of(p, r, 2, from).begin(1);
    std::vector<KeyRun> again = keys;
    drop_positions(again, 0, begin);
    drop_positions(again, begin + tile, std::max(r.kv_len(), begin + tile));
    keys.insert(keys.end(), again.begin(), again.end());
  });
}

/// What is merged ends with the split of 128 keys that the request's first row ends in.
template <From from>
bool rows_end_with_the_first_ones_split(const Problem& p, Attended& m) {
  return see_positions(p, m,
                       [&](const Request& r, std::int64_t, std::int64_t&, std::int64_t& last) {
                         const Splits splits{base_of(p, r, from), 2 * tile};
                         last = std::min(last, splits.begin(splits.of(r.committed) + 1));
                       });
}

// What to look at where several rows are about the same place of a kernel.
constexpr std::string_view splits_merged =
    "the number of splits in the reduction: fewer than were launched";
constexpr std::string_view splits_merged_of_window =
    "the number of splits in the reduction: fewer than were launched, counted from the window";
constexpr std::string_view begin_of_splits =
    "where a later split begins: its first tile skipped, as a prologue that only split 0 has";

constexpr std::string_view edge_of_splits =
    "the bounds of splits: the end of one and the begin of the next both count a tile";

constexpr std::array table = {
    Hypothesis{"last_split_missing", "the second of two splits is missing", splits_merged,
               last_split_missing<2, From::zero>},
    Hypothesis{"last_of_8_splits_missing", "the last of eight splits is missing", splits_merged,
               last_split_missing<8, From::zero>},
    Hypothesis{"last_of_64_splits_missing", "the last of 64 splits is missing", splits_merged,
               last_split_missing<64, From::zero>},
    Hypothesis{"last_split_of_the_window_missing",
               "the second of two splits is missing, counted from the window's begin",
               splits_merged_of_window, last_split_missing<2, From::window>},
    Hypothesis{"last_of_8_splits_of_the_window_missing",
               "the last of eight splits is missing, counted from the window's begin",
               splits_merged_of_window, last_split_missing<8, From::window>},
    Hypothesis{"first_tile_of_the_second_split_missing",
               "the second of two splits skips its first tile", begin_of_splits,
               first_tile_of_later_splits_missing<2, From::zero>},
    Hypothesis{"first_tile_of_8_splits_missing",
               "each of eight splits but the first skips its first tile", begin_of_splits,
               first_tile_of_later_splits_missing<8, From::zero>},
    Hypothesis{"first_tile_of_64_splits_missing",
               "each of 64 splits but the first skips its first tile", begin_of_splits,
               first_tile_of_later_splits_missing<64, From::zero>},
    Hypothesis{"first_tile_of_the_windows_second_split_missing",
               "the second of two splits skips its first tile, counted from the window's begin",
               begin_of_splits, first_tile_of_later_splits_missing<2, From::window>},
    Hypothesis{"first_tile_of_8_splits_of_the_window_missing",
               "each of eight splits but the first skips its first tile, counted from the window's "
               "begin",
               begin_of_splits, first_tile_of_later_splits_missing<8, From::window>},
    Hypothesis{"first_tile_of_the_second_split_twice",
               "the first 64 keys of the second of two splits count twice", edge_of_splits,
               first_tile_of_the_second_split_twice<From::zero>},
    Hypothesis{
        "first_tile_of_the_windows_second_split_twice",
        "the first 64 keys of the second of two splits count twice, counted from the window's "
        "begin",
        edge_of_splits, first_tile_of_the_second_split_twice<From::window>},
    Hypothesis{"rows_end_with_the_first_ones_split",
               "rows miss the splits of 128 keys that a request's first row has no key in",
               "how many splits are merged: computed once for a request, for its first row",
               rows_end_with_the_first_ones_split<From::zero>},
    Hypothesis{
        "rows_end_with_the_first_ones_split_of_the_window",
        "rows miss the splits of 128 keys, counted from the window's begin, that a request's "
        "first row has no key in",
        "how many splits are merged: computed once for a request, for its first row",
        rows_end_with_the_first_ones_split<From::window>},
};

}  // namespace

std::vector<Hypothesis> split_hypotheses() { return {table.begin(), table.end()}; }

}  // namespace attest
