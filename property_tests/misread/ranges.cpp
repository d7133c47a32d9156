// Where what a row sees begins and ends: causal order, lengths and windows. Of chains only; what a
// draft of a tree sees is no range (trees.cpp).

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

struct Range {
  std::int64_t begin = 0, end = 0;
};
using EditRange = std::function<void(const Seen&, Range&)>;

/// Keys that are seen are those of the range; past the last key too where `unbounded`.
std::function<void(const Seen&, std::vector<ReadKey>&)> see(EditRange edit, bool unbounded) {
  return [edit = std::move(edit), unbounded](const Seen& s, std::vector<ReadKey>& keys) {
    if (s.request().tree || s.view.model().cross_attention) return;
    Range range{first_seen(s), end_seen(s)};
    edit(s, range);
    range.begin = std::max<std::int64_t>(0, range.begin);
    if (!unbounded) range.end = std::min(range.end, s.request().keys);
    keys.clear();
    for (std::int64_t p = range.begin; p < range.end; ++p) keys.push_back({p});
  };
}

void add(std::vector<Misreading>& all, const std::string& id, const std::string& says,
         const EditRange& edit, bool beyond = false) {
  Misreading& one = all.emplace_back();
  one.id = id;
  one.says = says;
  one.keys = see(edit, false);
  if (!beyond) return;
  Misreading& more = all.emplace_back();
  more.id = id + "_and_past_the_last_key";
  more.says = says + ", past the request's last key too";
  more.keys = see(edit, true);
}

bool has_window(const Seen& s) { return s.view.model().window.has_value(); }
std::int64_t window(const Seen& s) { return s.view.model().window.value_or(0); }

std::int64_t most_new(const KernelView& view) {
  std::int64_t most = 0;
  for (const ViewedRequest& r : view.requests) most = std::max(most, r.rows);
  return most;
}

/// Ends and begins that are off by a number at hand; the smallest are in the tables of hypotheses.
void add_offsets(std::vector<Misreading>& all) {
  std::vector<Quantity> list = quantities();
  list.push_back({"most_new_tokens", "the most new tokens of a request",
                  [](const Seen& s) { return most_new(s.view); }});
  list.push_back({"missing_new_tokens", "what it has fewer new tokens than the longest",
                  [](const Seen& s) { return most_new(s.view) - s.request().rows; }});
  list.push_back({"later_rows", "the rows of its request behind it",
                  [](const Seen& s) { return s.request().rows - 1 - s.token; }});
  for (const Quantity& q : list) {
    for (const std::int64_t sign : {-1, 1}) {
      const std::string more = sign < 0 ? "fewer" : "more";
      const auto by = [of = q.of, sign](const Seen& s) { return sign * of(s); };
      add(
          all, "ends_" + more + "_by_" + q.id,
          "rows see " + more + " keys at the end, by " + q.says,
          [by](const Seen& s, Range& r) { r.end += by(s); }, sign > 0);
      add(all, "window_" + more + "_by_" + q.id,
          "the window shows " + more + " keys at its begin, by " + q.says,
          [by](const Seen& s, Range& r) {
            if (has_window(s) && r.begin > 0) r.begin -= by(s);
          });
      add(
          all, "positions_" + std::string(sign < 0 ? "early" : "late") + "_by_" + q.id,
          "positions are off, in the mask and the window, by " + q.says,
          [by](const Seen& s, Range& r) {
            r.end += by(s);
            if (has_window(s)) r.begin = r.end - window(s);
          },
          sign > 0);
    }
  }
}

/// Ends and begins at whole tiles.
void add_tiles(std::vector<Misreading>& all, const std::string& name,
               const std::function<std::int64_t(const Seen&)>& size) {
  const auto down = [size](const Seen& s, std::int64_t x) {
    return floor_div(x, size(s)) * size(s);
  };
  const auto up = [size](const Seen& s, std::int64_t x) {
    return floor_div(x + size(s) - 1, size(s)) * size(s);
  };
  add(all, "rows_end_with_the_last_whole_" + name, "rows end with their last whole " + name,
      [down](const Seen& s, Range& r) { r.end = down(s, r.end); });
  add(
      all, "rows_see_to_the_end_of_" + name, "rows see to the end of the last " + name,
      [up](const Seen& s, Range& r) { r.end = up(s, r.end); }, true);
  add(all, "rows_end_before_their_own_" + name, "rows do not see the " + name + " of their own key",
      [down](const Seen& s, Range& r) { r.end = down(s, r.end - 1); });
  add(all, "keys_end_with_the_last_whole_" + name,
      "keys after the last whole " + name + " are missing",
      [down](const Seen& s, Range& r) { r.end = std::min(r.end, down(s, s.request().keys)); });
  add(all, "window_from_the_begin_of_" + name,
      "the window shows the whole " + name + " it begins in",
      [down](const Seen& s, Range& r) { r.begin = down(s, r.begin); });
  add(all, "window_from_the_next_" + name, "the window begins with the first whole " + name,
      [up](const Seen& s, Range& r) { r.begin = up(s, r.begin); });
  add(all, "window_without_its_first_" + name, "the window misses the " + name + " it begins in",
      [down, size](const Seen& s, Range& r) {
        if (has_window(s) && r.begin > 0) r.begin = down(s, r.begin) + size(s);
      });
  add(all, "window_one_more_" + name, "the window shows one " + name + " more",
      [down, size](const Seen& s, Range& r) {
        if (has_window(s)) r.begin = down(s, r.begin) - size(s);
      });
}

/// Rows of a block, packed with their heads or not, that share one row's end or begin.
void add_blocks(std::vector<Misreading>& all, std::int64_t block) {
  for (const bool packed : {false, true}) {
    const std::string name =
        "block_of_" + std::to_string(block) + (packed ? "_packed" : "") + "_rows";
    const std::string says =
        "block of " + std::to_string(block) + (packed ? " packed" : "") + " rows";
    const auto first = [=](const Seen& s) {
      if (!packed) return s.token / block * block;
      return s.packed() / block * block / s.view.group();
    };
    const auto last = [=](const Seen& s) {
      const std::int64_t end = packed ? ((s.packed() / block + 1) * block - 1) / s.view.group()
                                      : (s.token / block + 1) * block - 1;
      return std::min(end, s.request().rows - 1);
    };
    const auto end_of = [](const Seen& s, std::int64_t token) {
      return s.request().committed() + token + 1;
    };
    const auto begin_of = [](const Seen& s, std::int64_t token, Range& r) {
      if (!has_window(s)) return;
      r.begin = s.request().committed() + token - window(s) + 1;
    };
    add(all, "end_of_the_first_row_of_a_" + name, "rows end with the first row of their " + says,
        [=](const Seen& s, Range& r) { r.end = end_of(s, first(s)); });
    add(all, "end_of_the_last_row_of_a_" + name, "rows end with the last row of their " + says,
        [=](const Seen& s, Range& r) { r.end = end_of(s, last(s)); });
    add(all, "window_of_the_first_row_of_a_" + name,
        "rows see from where the window of the first row of their " + says + " begins",
        [=](const Seen& s, Range& r) { begin_of(s, first(s), r); });
    add(all, "window_of_the_last_row_of_a_" + name,
        "rows see from where the window of the last row of their " + says + " begins",
        [=](const Seen& s, Range& r) { begin_of(s, last(s), r); });
    add(all, "position_of_the_first_row_of_a_" + name,
        "rows take the position of the first row of their " + says, [=](const Seen& s, Range& r) {
          begin_of(s, first(s), r);
          r.end = end_of(s, first(s));
        });
    add(all, "position_of_the_last_row_of_a_" + name,
        "rows take the position of the last row of their " + says, [=](const Seen& s, Range& r) {
          begin_of(s, last(s), r);
          r.end = end_of(s, last(s));
        });
  }
}

void add_windows(std::vector<Misreading>& all) {
  struct Window {
    const char* id;
    const char* says;
    void (*edit)(const Seen&, Range&);
  };
  static const Window windows[] = {
      {"window_of_the_last_row", "all rows see from where the last row's window begins",
       [](const Seen& s, Range& r) { r.begin = s.request().keys - window(s); }},
      {"window_before_the_committed_keys_end", "the window is counted from the committed length",
       [](const Seen& s, Range& r) { r.begin = s.request().committed() - window(s); }},
      {"window_of_the_longest_request", "the window is counted from the longest length",
       [](const Seen& s, Range& r) { r.begin = longest(s.view) - window(s); }},
      {"window_of_the_first_request", "the window is counted from request 0's length",
       [](const Seen& s, Range& r) { r.begin = s.view.requests.front().keys - window(s); }},
      {"window_top_left", "the window is counted from the first new token",
       [](const Seen& s, Range& r) { r.begin = s.token - window(s) + 1; }},
      {"window_at_the_begin", "the window shows the oldest keys, not the newest",
       [](const Seen& s, Range& r) { r = {0, std::min(r.end, window(s))}; }},
      {"window_doubled", "the window is twice as long",
       [](const Seen&, Range& r) { r.begin = 2 * r.begin - r.end; }},
      {"window_halved", "the window is half as long",
       [](const Seen& s, Range& r) { r.begin = std::max(r.begin, r.end - window(s) / 2); }},
      {"window_on_both_sides", "the window shows as many later keys as earlier ones",
       [](const Seen& s, Range& r) { r.end += window(s) - 1; }},
      {"window_in_pages", "the window is counted in pages",
       [](const Seen& s, Range& r) { r.begin = r.end - window(s) * s.view.page; }},
      {"window_of_a_pages_share", "the window is divided by the page size",
       [](const Seen& s, Range& r) {
         r.begin = std::max(r.begin, r.end - std::max<std::int64_t>(1, window(s) / s.view.page));
       }},
      {"window_without_own_key", "the window counts keys before the row's own, and hides that",
       [](const Seen&, Range& r) { --r.end, --r.begin; }},
      {"window_by_the_packed_row", "the window begins by the row's number among packed ones",
       [](const Seen& s, Range& r) { r.begin += s.packed() - s.token; }},
  };
  for (const Window& one : windows) {
    add(all, one.id, one.says, [edit = one.edit](const Seen& s, Range& r) {
      if (has_window(s)) edit(s, r);
    });
  }
  Misreading& prefix = all.emplace_back();
  prefix.id = "window_only_among_new_tokens";
  prefix.says = "the window hides no committed key";
  prefix.keys = [](const Seen& s, std::vector<ReadKey>& keys) {
    if (!has_window(s) || s.request().tree || s.view.model().cross_attention) return;
    std::vector<ReadKey> all_keys;
    const std::int64_t committed = s.request().committed();
    for (std::int64_t p = 0; p < std::min(committed, first_seen(s)); ++p) all_keys.push_back({p});
    all_keys.insert(all_keys.end(), keys.begin(), keys.end());
    keys = std::move(all_keys);
  };
}

void add_lengths(std::vector<Misreading>& all) {
  std::vector<OtherRequest> others = other_requests();
  for (const OtherRequest& other : others) {
    const auto of = [of = other.of](const Seen& s) -> const ViewedRequest& {
      const std::int64_t at = of(s);
      return at < 0 ? s.request() : s.view.requests[static_cast<std::size_t>(at)];
    };
    add(
        all, "length_of_" + other.id, "lengths are those of " + other.says,
        [of](const Seen& s, Range& r) {
          const std::int64_t by = of(s).keys - s.request().keys;
          r.end += by;
          if (has_window(s)) r.begin += by;
        },
        true);
    add(
        all, "prefix_of_" + other.id, "committed lengths are those of " + other.says,
        [of](const Seen& s, Range& r) { r.end += of(s).committed() - s.request().committed(); },
        true);
    add(all, "bounded_by_" + other.id, "no row sees more keys than there are of " + other.says,
        [of](const Seen& s, Range& r) { r.end = std::min(r.end, of(s).keys); });
  }
  add(all, "bounded_by_the_shortest", "no row sees more keys than the shortest request has",
      [](const Seen& s, Range& r) { r.end = std::min(r.end, shortest(s.view)); });
  add(
      all, "length_of_the_longest", "all requests are as long as the longest",
      [](const Seen& s, Range& r) { r.end += longest(s.view) - s.request().keys; }, true);
  add(
      all, "ends_by_the_packed_row", "rows end by their number among packed ones",
      [](const Seen& s, Range& r) { r.end += s.packed() - s.token; }, true);
  add(
      all, "ends_by_the_row_of_the_batch", "rows end by their number in the batch",
      [](const Seen& s, Range& r) { r.end += s.place.row - s.token; }, true);
  add(all, "order_reversed", "the causal order among new tokens is reversed",
      [](const Seen& s, Range& r) { r.end = s.request().keys - s.token; });
}

}  // namespace

void add_range_misreadings(std::vector<Misreading>& all) {
  add_windows(all);
  add_lengths(all);
  add_offsets(all);
  add_tiles(all, "page", [](const Seen& s) { return s.view.page; });
  for (const std::int64_t tile : {64, 16, 32, 128, 8, 4, 2, 256}) {
    add_tiles(all, "tile_of_" + std::to_string(tile), [tile](const Seen&) { return tile; });
  }
  for (const std::int64_t block : {4, 16, 8, 32, 64, 2, 128}) add_blocks(all, block);
  for (const std::int64_t part : {2, 4, 8}) {
    const std::string n = std::to_string(part);
    add(all, "first_1_in_" + n + "_of_the_pages_only",
        "rows see the first 1 in " + n + " of a request's pages only",
        [part](const Seen& s, Range& r) {
          const std::int64_t keys = part * s.view.page;
          r.end = std::min(r.end, (s.request().keys + keys - 1) / keys * s.view.page);
        });
  }
  for (const std::int64_t most : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    const std::string n = std::to_string(most);
    add(all, "newest_" + n + "_keys_only", "rows see their newest " + n + " keys only",
        [most](const Seen&, Range& r) { r.begin = std::max(r.begin, r.end - most); });
    add(all, "oldest_" + n + "_keys_only", "rows see the oldest " + n + " keys only",
        [most](const Seen&, Range& r) { r.end = std::min(r.end, most); });
  }
}

}  // namespace attest
