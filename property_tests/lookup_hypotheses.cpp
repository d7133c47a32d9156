#include <algorithm>
#include <array>

#include "property_tests/diagnose.hpp"
#include "property_tests/meaning_edits.hpp"

namespace attest {
namespace {

/// Nobody asks for each row's own window.
bool window_from_the_first_row(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(p, m,
                       [&](const Request& r, std::int64_t, std::int64_t& first, std::int64_t&) {
                         first = std::max<std::int64_t>(0, r.committed - *p.model.window + 1);
                       });
}

bool window_only_over_the_prefix(const Problem& p, Attended& m) {
  if (!p.model.window) return false;
  return see_positions(p, m,
                       [](const Request& r, std::int64_t, std::int64_t& first, std::int64_t&) {
                         first = std::min(first, r.committed);
                       });
}

template <std::int64_t rows>
bool rows_end_with_their_block(const Problem& p, Attended& m) {
  return see_positions(p, m,
                       [](const Request& r, std::int64_t t, std::int64_t&, std::int64_t& last) {
                         last = r.committed + (t / rows + 1) * rows;
                       });
}

// --- Where keys are looked up ---

/// Key `position` of a request is what lies at where(request, position).
template <class Where>
bool looked_up_at(const Problem& p, Attended& m, Where&& where) {
  if (p.model.cross_attention) return false;
  return edit_keys(m, [&](const AttendedRow& row, std::vector<KeyRun>& keys) {
    const Request& r = request_of(p, row);
    std::vector<KeyRun> found;
    for (const KeyRun& run : keys) {
      for (std::int64_t position = run.first; position < run.first + run.count; ++position) {
        const std::int64_t at = where(r, position);
        add_positions(r, at, at + 1, found);
      }
    }
    keys = std::move(found);
  });
}

bool each_key_is_the_one_before(const Problem& p, Attended& m) {
  return looked_up_at(p, m, [](const Request&, std::int64_t position) {
    return std::max<std::int64_t>(0, position - 1);
  });
}

bool first_key_of_a_page_from_the_page_before(const Problem& p, Attended& m) {
  const std::int64_t page = p.pool.page_size;
  if (page == 1) return false;
  return looked_up_at(p, m, [page](const Request&, std::int64_t position) {
    return position > 0 && position % page == 0 ? position - page : position;
  });
}

bool one_page_a_tile(const Problem& p, Attended& m) {
  constexpr std::int64_t keys = 64;
  const std::int64_t page = p.pool.page_size;
  if (page == 1 || page >= keys) return false;
  return looked_up_at(p, m, [&](const Request& r, std::int64_t position) {
    const std::int64_t oldest = p.model.window ? r.committed - *p.model.window + 1 : 0;
    const std::int64_t looked_up = std::max(position / keys * keys, oldest);
    return looked_up / page * page + position % page;
  });
}

constexpr std::array table = {
    Hypothesis{"window_from_the_first_row",
               "all rows of a request see from where the first row's window begins",
               "the window's first key: computed once for a request, for its first row",
               window_from_the_first_row},
    Hypothesis{"window_only_over_the_prefix", "the window hides no new token from another",
               "the window's test in the pass over new keys", window_only_over_the_prefix},
    Hypothesis{"rows_end_with_their_block_of_4",
               "rows see the new tokens up to the end of their block of 4",
               "the causal bound: computed once for a block of 4 query rows, for its last",
               rows_end_with_their_block<4>},
    Hypothesis{"rows_end_with_their_block_of_16",
               "rows see the new tokens up to the end of their block of 16",
               "the causal bound: computed once for a block of 16 query rows, for its last",
               rows_end_with_their_block<16>},
    Hypothesis{"each_key_is_the_one_before", "each key is the one before it",
               "the position looked up: `key - 1`, or a prefetch that is one behind",
               each_key_is_the_one_before},
    Hypothesis{"first_key_of_a_page_from_the_page_before",
               "the first key of each page comes from the page before",
               "when the page number is loaded anew: after the first key of a page, not before it",
               first_key_of_a_page_from_the_page_before},
    Hypothesis{"one_page_a_tile", "64 keys at a time come from the page of the first of them",
               "the page lookup: once for a tile of 64 keys, where a page is smaller",
               one_page_a_tile},
};

}  // namespace

std::vector<Hypothesis> lookup_hypotheses() { return {table.begin(), table.end()}; }

}  // namespace attest
