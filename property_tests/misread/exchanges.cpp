// Keys that change places with others of their tile, or are looked up where a tile or a page of
// another size would have them: packings, loads of half a tile, steps.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

using I = std::int64_t;

/// Another key of the request, where there is one in the same tensor.
void go_to(const Seen& s, Lookup& l, I there) {
  const bool same_tensor = (there < s.request().pooled) == (l.position < s.request().pooled);
  if (there >= 0 && there < s.request().keys && same_tensor) l.position = there;
}

/// Where key `at` of a tile comes from.
struct Exchange {
  const char *id, *says;
  I smallest;  ///< tile of which it is no other exchange, nor none
  I (*of)(I at, I tile);
};
constexpr Exchange exchanges[] = {
    {"halves_swapped", "the other half of", 2,
     [](I at, I tile) { return at < tile / 2 ? at + tile / 2 : at - tile / 2; }},
    {"second_half_repeats_the_first", "the first half again of", 2,
     [](I at, I tile) { return at % (tile / 2); }},
    {"first_half_is_the_second", "the second half twice of", 2,
     [](I at, I tile) { return tile / 2 + at % (tile / 2); }},
    {"even_keys_first", "every second key, then the others, of", 4,
     [](I at, I tile) { return at < tile / 2 ? 2 * at : 2 * at - tile + 1; }},
    {"halves_interleaved", "the two halves in turn of", 4,
     [](I at, I tile) { return at % 2 * (tile / 2) + at / 2; }},
    {"reversed", "the reversed order of", 4, [](I at, I tile) { return tile - 1 - at; }},
};

void add_exchanges(std::vector<Misreading>& all, I tile) {
  const std::string n = std::to_string(tile);
  for (const Exchange& exchange : exchanges) {
    if (tile < exchange.smallest) continue;
    for (const Operand& operand : operands()) {
      Misreading& one = all.emplace_back(
          of_operand(operand, std::string(exchange.id) + "_of_" + n + "_keys",
                     std::string("from ") + exchange.says + " each " + n + " keys"));
      one.key = [of = exchange.of, tile](const Seen& s, Lookup& l) {
        const I first = floor_div(l.position, tile) * tile;
        go_to(s, l, first + of(l.position - first, tile));
      };
    }
  }
}

/// Tiles of `tile` keys that begin as far apart as tiles of another size would.
void add_steps(std::vector<Misreading>& all, I tile) {
  struct Step {
    std::string id, says;
    std::function<I(const Seen&)> of;
  };
  std::vector<Step> steps = {
      {"head_dim", "as many as a K row has elements",
       [](const Seen& s) { return s.view.model().head_dim; }},
      {"v_head_dim", "as many as a V row has elements",
       [](const Seen& s) { return s.view.model().v_head_dim; }},
      {"a_tile_by_the_sizes_of_v_and_k", "a tile's share by the sizes of V and K",
       [tile](const Seen& s) {
         return tile * s.view.model().v_head_dim / s.view.model().head_dim;
       }},
      {"a_page", "a page's", [](const Seen& s) { return s.view.page; }},
  };
  for (const I fixed : {tile / 2, tile * 2, tile - 1, tile + 1}) {
    steps.push_back(
        {std::to_string(fixed), std::to_string(fixed), [fixed](const Seen&) { return fixed; }});
  }
  const std::string n = std::to_string(tile);
  for (const Step& step : steps) {
    for (const Operand& operand : operands()) {
      Misreading& one = all.emplace_back(
          of_operand(operand, "tiles_of_" + n + "_by_" + step.id,
                     "from tiles of " + n + " keys that begin too near or far: " + step.says));
      one.key = [of = step.of, tile](const Seen& s, Lookup& l) {
        const I there = floor_div(l.position, tile) * of(s) + floor_mod(l.position, tile);
        go_to(s, l, std::min(there, s.request().keys - 1));
      };
    }
  }
}

/// Entries of a list that are read for several pages.
void add_columns(std::vector<Misreading>& all, I count) {
  const std::string n = std::to_string(count);
  const auto column = [](const Seen& s, const Lookup& l) {
    return floor_div(l.position, s.view.page);
  };
  for (const Operand& operand : operands()) {
    Misreading& again = all.emplace_back(of_operand(
        operand, "columns_repeat_after_" + n, "from a request's first " + n + " pages again"));
    again.entry = [=](const Seen& s, Lookup& l) {
      l.index -= column(s, l) - floor_mod(column(s, l), count);
    };
    Misreading& behind =
        all.emplace_back(of_operand(operand, "one_entry_for_" + n + "_pages",
                                    "from what lies behind one listed page of each " + n));
    behind.entry = [=](const Seen& s, Lookup& l) { l.index -= floor_mod(column(s, l), count); };
    behind.address = [=](const Seen& s, Lookup& l) { l.page += floor_mod(column(s, l), count); };
  }
}

/// Rows that are read from another element on.
void add_elements(std::vector<Misreading>& all) {
  struct First {
    std::string id, says;
    std::function<I(const Seen&)> of;
  };
  std::vector<First> firsts = {
      {"what_k_has_more", "as many as K has more than V",
       [](const Seen& s) { return s.view.model().head_dim - s.view.model().v_head_dim; }},
      {"a_v_row", "as many as V has", [](const Seen& s) { return s.view.model().v_head_dim; }},
      {"half_a_row", "half as many as K has",
       [](const Seen& s) { return s.view.model().head_dim / 2; }},
  };
  for (const I fixed : {1, 8, 16, 32, 64}) {
    firsts.push_back(
        {std::to_string(fixed), std::to_string(fixed), [fixed](const Seen&) { return fixed; }});
  }
  for (const First& first : firsts) {
    for (const Operand& operand : operands()) {
      Misreading& one =
          all.emplace_back(of_operand(operand, "rows_begin_elements_late_by_" + first.id,
                                      "from some elements further on: " + first.says));
      one.address = [of = first.of](const Seen& s, Lookup& l) { l.element += of(s); };
    }
  }
}

}  // namespace

void add_exchange_misreadings(std::vector<Misreading>& all) {
  for (const I tile : {2, 4, 8, 16, 32, 64, 128}) add_exchanges(all, tile);
  for (const I tile : {64, 16, 32, 128}) add_steps(all, tile);
  for (const I count : {2, 4, 8, 16}) add_columns(all, count);
  add_elements(all);
}

}  // namespace attest
