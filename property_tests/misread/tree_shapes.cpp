// Draft trees whose masks are read from another entry or column, in part only, or stand for
// something else: depths, siblings, blocks.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"
#include "property_tests/misread/tree_bits.hpp"

namespace attest {
namespace {

using I = std::int64_t;

I parent(const Seen& s, I token) {
  return tree_parents(s, s.number)[static_cast<std::size_t>(token)];
}

/// Of the first draft 0.
I depth(const Seen& s, I token) {
  I steps = 0;
  while ((token = parent(s, token)) >= 0) ++steps;
  return steps;
}

I last_child(const Seen& s, I token) {
  const auto& parents = tree_parents(s, s.number);
  const auto found = std::find(parents.rbegin(), parents.rend(), token);
  return static_cast<I>(std::distance(found, parents.rend())) - 1;
}

void add_shapes(std::vector<Misreading>& all) {
  struct Shape {
    const char* id;
    const char* says;
    bool (*read)(const Seen&, I, I);
  };
  static const Shape shapes[] = {
      {"seen_by_depth", "drafts see all drafts that are less deep",
       [](const Seen& s, I t, I u) { return t == u || depth(s, u) < depth(s, t); }},
      {"seen_by_depth_with_equals", "drafts see all drafts that are no deeper",
       [](const Seen& s, I t, I u) { return depth(s, u) <= depth(s, t); }},
      {"seen_by_depth_before", "drafts see drafts before them that are less deep",
       [](const Seen& s, I t, I u) { return t == u || (u < t && depth(s, u) < depth(s, t)); }},
      {"position_is_the_depth", "drafts see as many drafts as they have ancestors, from the first",
       [](const Seen& s, I t, I u) { return u <= depth(s, t); }},
      {"newest_by_depth", "drafts see as many drafts as they have ancestors, from themselves back",
       [](const Seen& s, I t, I u) { return u <= t && u >= t - depth(s, t); }},
      {"siblings_seen", "drafts see the other children of their parent too",
       [](const Seen& s, I t, I u) { return mask_bit(s, t, u) || parent(s, t) == parent(s, u); }},
      {"siblings_before_seen", "drafts see the children of their parent before them too",
       [](const Seen& s, I t, I u) {
         return mask_bit(s, t, u) || (u < t && parent(s, t) == parent(s, u));
       }},
      {"parents_row", "each draft has the mask's row of its parent",
       [](const Seen& s, I t, I u) { return mask_bit(s, std::max<I>(0, parent(s, t)), u); }},
      {"parents_row_and_own_key", "each draft has its parent's row and sees itself",
       [](const Seen& s, I t, I u) {
         return t == u || mask_bit(s, std::max<I>(0, parent(s, t)), u);
       }},
      {"childs_row", "each draft has the mask's row of its last child",
       [](const Seen& s, I t, I u) {
         const I child = last_child(s, t);
         return mask_bit(s, child < 0 ? t : child, u);
       }},
      {"descendants_seen", "drafts see their descendants too",
       [](const Seen& s, I t, I u) { return mask_bit(s, t, u) || mask_bit(s, u, t); }},
      {"grandparents_hidden", "drafts see themselves, their parent and the parent's parent only",
       [](const Seen& s, I t, I u) {
         const I up = parent(s, t);
         return t == u || up == u || (up >= 0 && parent(s, up) == u);
       }},
      {"parent_hidden", "drafts do not see their parent",
       [](const Seen& s, I t, I u) { return parent(s, t) != u && mask_bit(s, t, u); }},
      {"last_draft_seen", "drafts see the last draft too",
       [](const Seen& s, I t, I u) { return u == s.request().rows - 1 || mask_bit(s, t, u); }},
      {"last_draft_hidden", "the last draft sees and is seen as if it were none",
       [](const Seen& s, I t, I u) { return u != s.request().rows - 1 && mask_bit(s, t, u); }},
      {"draft_before_seen", "drafts see the draft before them too",
       [](const Seen& s, I t, I u) { return u == t - 1 || mask_bit(s, t, u); }},
      {"draft_behind_seen", "drafts see the draft behind them too",
       [](const Seen& s, I t, I u) { return u == t + 1 || mask_bit(s, t, u); }},
  };
  for (const Shape& shape : shapes) add_tree_mistake(all, shape.id, shape.says, shape.read);
}

/// The mask is read in some blocks of it, elsewhere all is seen.
void add_blocks(std::vector<Misreading>& all, I block) {
  const std::string n = std::to_string(block);
  const auto add = [&](const std::string& id, const std::string& says, auto unread) {
    add_tree_mistake(all, id + n, says, [unread, block](const Seen& s, I t, I u) {
      return unread(t / block, u / block, t, u) || mask_bit(s, t, u);
    });
  };
  add("unread_before_blocks_of_", "the mask is not read before a row's own block of " + n,
      [](I rows, I columns, I, I) { return columns < rows; });
  add("unread_behind_blocks_of_", "the mask is not read behind a row's own block of " + n,
      [](I rows, I columns, I, I) { return columns > rows; });
  add("unread_in_blocks_of_", "the mask is not read in a row's own block of " + n,
      [](I rows, I columns, I, I) { return columns == rows; });
  add("unread_outside_blocks_of_", "the mask is read in a row's own block alone, of " + n,
      [](I rows, I columns, I, I) { return columns != rows; });
  add("unread_in_the_first_block_of_", "the mask is not read for the first drafts, as many as " + n,
      [](I rows, I, I, I) { return rows == 0; });
  add("unread_behind_the_first_block_of_", "the mask is read for the first drafts alone: " + n,
      [](I rows, I, I, I) { return rows > 0; });
  add("causal_in_blocks_of_", "the causal order holds in a row's own block of " + n,
      [](I rows, I columns, I t, I u) { return columns == rows && u <= t; });
}

/// Entries of a request's own square, read some places further on.
void add_late_entries(std::vector<Misreading>& all) {
  enum class Beyond { unseen, seen, wraps };
  struct Outside {
    Beyond what;
    const char *id, *says;
  };
  static const Outside outsides[] = {{Beyond::unseen, "", ""},
                                     {Beyond::seen, "_then_seen", ", seen behind its end"},
                                     {Beyond::wraps, "_and_around", ", around at its end"}};
  for (const I by : {1, -1, 2, -2, 4, 8}) {
    for (const Outside& outside : outsides) {
      const std::string n = std::to_string(std::abs(by)) + (by < 0 ? "_early" : "_late");
      add_tree_mistake(all, "square_read_" + n + outside.id,
                       "the request's mask is read " + std::to_string(std::abs(by)) +
                           (by < 0 ? " entries too early" : " entries too late") + outside.says,
                       [by, what = outside.what](const Seen& s, I t, I u) {
                         const I rows = s.request().rows;
                         I at = t * rows + u + by;
                         if (at < 0 || at >= rows * rows) {
                           if (what != Beyond::wraps) return what == Beyond::seen;
                           at = floor_mod(at, rows * rows);
                         }
                         return mask_bit(s, at / rows, at % rows);
                       });
    }
  }
}

/// Columns that are counted from another key than the first draft's.
void add_column_begins(std::vector<Misreading>& all) {
  struct Begin {
    std::string id, says;
    std::function<I(const Seen&)> of;
  };
  std::vector<Begin> begins = {
      {"key_0", "key 0", [](const Seen&) { return I{0}; }},
      {"the_page", "the page that the committed keys end in",
       [](const Seen& s) { return s.request().committed() / s.view.page * s.view.page; }},
      {"the_page_behind", "the page behind the committed keys",
       [](const Seen& s) {
         return (s.request().committed() + s.view.page - 1) / s.view.page * s.view.page;
       }},
      {"as_many_keys_before", "as many keys before the drafts as there are drafts",
       [](const Seen& s) { return s.request().committed() - s.request().rows; }},
      {"one_key_before", "the key before the drafts",
       [](const Seen& s) { return s.request().committed() - 1; }},
      {"one_key_behind", "the second draft's key",
       [](const Seen& s) { return s.request().committed() + 1; }},
  };
  for (const I tile : {64, 16, 32, 128, 8}) {
    const std::string n = std::to_string(tile);
    begins.push_back({"the_tile_of_" + n, "the tile of " + n + " that the committed keys end in",
                      [tile](const Seen& s) { return s.request().committed() / tile * tile; }});
    begins.push_back(
        {"the_tile_of_" + n + "_behind", "the tile of " + n + " behind the committed keys",
         [tile](const Seen& s) { return (s.request().committed() + tile - 1) / tile * tile; }});
  }
  for (const Begin& begin : begins) {
    for (const bool beyond : {true, false}) {
      Misreading& one = all.emplace_back();
      one.id = "tree_columns_from_" + begin.id + (beyond ? "" : "_then_unseen");
      one.says = "of draft trees, the mask's columns are counted from " + begin.says +
                 (beyond ? "" : ", and keys behind them are unseen");
      one.keys = [of = begin.of, beyond](const Seen& s, std::vector<ReadKey>& keys) {
        if (!s.request().tree) return;
        const I first = of(s);
        keys.clear();
        for (I p = 0; p < s.request().keys; ++p) {
          const I column = p - first;
          const bool inside = column >= 0 && column < s.request().rows;
          const bool seen = inside ? mask_bit(s, s.token, column) : column < 0 || beyond;
          if (seen) keys.push_back({p});
        }
      };
    }
  }
}

}  // namespace

void add_tree_shape_misreadings(std::vector<Misreading>& all) {
  add_shapes(all);
  for (const I block : {4, 8, 16, 2, 32, 64}) add_blocks(all, block);
  add_late_entries(all);
  add_column_begins(all);
}

}  // namespace attest
