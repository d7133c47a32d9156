// Keys that come from another position: of all keys, of the page alone or of the place in it alone.

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

std::int64_t last_of(const Seen& seen) { return seen.request().keys - 1; }

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

std::string number(std::int64_t n) { return std::to_string(n); }

/// What of a lookup moves.
void add_shifts(std::vector<Misreading>& all, const Quantity& quantity, int sign) {
  const std::string by = (sign < 0 ? "minus_" : "plus_") + quantity.id;
  const std::string words = quantity.says + (sign < 0 ? " before it" : " behind it");
  const auto of = [of = quantity.of, sign](const Seen& s) { return sign * of(s); };
  for (const Operand& operand : operands()) {
    Misreading& whole = all.emplace_back(of_operand(
        operand, "position_" + by, "from the key " + words + ", as far as there is one"));
    whole.key = [of](const Seen& s, Lookup& l) {
      l.position = std::clamp<std::int64_t>(l.position + of(s), 0, last_of(s));
    };
    Misreading& beyond =
        all.emplace_back(of_operand(operand, "place_" + by, "from the key " + words));
    beyond.key = [of](const Seen& s, Lookup& l) { l.position += of(s); };
    Misreading& page = all.emplace_back(
        of_operand(operand, "page_of_position_" + by, "from the page of the key " + words));
    page.entry = [of](const Seen& s, Lookup& l) {
      const std::int64_t at = std::max<std::int64_t>(0, l.position + of(s));
      l.index += floor_div(at, s.view.page) - floor_div(l.position, s.view.page);
    };
    Misreading& offset = all.emplace_back(of_operand(
        operand, "offset_of_position_" + by, "from the place in its page of the key " + words));
    offset.entry = [of](const Seen& s, Lookup& l) {
      l.within = floor_mod(l.position + of(s), s.view.page);
    };
    Misreading& slot = all.emplace_back(
        of_operand(operand, "slot_" + by, "from the slot " + words + " in the pool"));
    slot.entry = [of](const Seen& s, Lookup& l) { l.within += of(s); };
  }
}

/// Tiles of `tile` keys that are looked up, or kept, as one.
void add_tiles(std::vector<Misreading>& all, std::int64_t tile) {
  const std::string size = number(tile);
  const std::string of = "_of_" + size;
  for (const Operand& operand : operands()) {
    for (const bool from_window : {false, true}) {
      const auto begin = [tile, from_window](const Seen& s, std::int64_t position) {
        const std::int64_t base = from_window ? first_seen(s) : 0;
        return base + floor_div(position - base, tile) * tile;
      };
      const std::string where = from_window ? "_from_the_window" : "";
      const std::string counted = from_window ? ", counted from the window's begin" : "";
      Misreading& one = all.emplace_back(
          of_operand(operand, joined({"one_page_a_tile", of, where}),
                     joined({"from the page of the first of ", size, " keys", counted})));
      one.entry = [begin](const Seen& s, Lookup& l) {
        l.index += floor_div(std::max(begin(s, l.position), first_seen(s)), s.view.page) -
                   floor_div(l.position, s.view.page);
      };
      Misreading& run = all.emplace_back(of_operand(
          operand, joined({"tiles_taken_as_contiguous", of, where}),
          joined({"from the slots behind that of the first of ", size, " keys", counted})));
      run.entry = [begin](const Seen& s, Lookup& l) {
        const std::int64_t first = std::max(begin(s, l.position), first_seen(s));
        l.index += floor_div(first, s.view.page) - floor_div(l.position, s.view.page);
        l.within = floor_mod(first, s.view.page) + l.position - first;
      };
      for (const int step : {-1, 1}) {
        Misreading& other = all.emplace_back(
            of_operand(operand, joined({step < 0 ? "previous_tile" : "next_tile", of, where}),
                       joined({"from the ", step < 0 ? "tile before" : "tile behind",
                               ", where there is one, of tiles of ", size, " keys", counted})));
        other.key = [begin, tile, step](const Seen& s, Lookup& l) {
          const std::int64_t there = l.position + step * tile;
          if (begin(s, there) < begin(s, first_seen(s)) || there > last_of(s)) return;
          l.position = there;
        };
        Misreading& last = all.emplace_back(
            of_operand(operand,
                       joined({step < 0 ? "last_tile_is_the_one_before" : "first_tile_is_the_next",
                               of, where}),
                       joined({step < 0 ? "in the last tile from the one before"
                                        : "in the first tile from the next one",
                               ", of tiles of ", size, " keys", counted})));
        last.key = [begin, tile, step](const Seen& s, Lookup& l) {
          const std::int64_t edge = begin(s, step < 0 ? end_seen(s) - 1 : first_seen(s));
          const std::int64_t there = l.position + step * tile;
          if (begin(s, l.position) == edge && there >= 0 && there <= last_of(s)) l.position = there;
        };
      }
      Misreading& first = all.emplace_back(
          of_operand(operand, joined({"first_key_of_each_tile", of, where}),
                     joined({"from the first of ", size, " keys for all of them", counted})));
      first.key = [begin](const Seen& s, Lookup& l) {
        l.position = std::max<std::int64_t>(0, begin(s, l.position));
      };
      Misreading& same = all.emplace_back(
          of_operand(operand, joined({"first_tile_again", of, where}),
                     joined({"from the first ", size, " keys again and again", counted})));
      same.key = [begin](const Seen& s, Lookup& l) {
        const std::int64_t edge = begin(s, first_seen(s));
        l.position = std::min(edge + l.position - begin(s, l.position), last_of(s));
      };
    }
    Misreading& stage = all.emplace_back(of_operand(
        operand, "tile_of_the_other_stage" + of,
        joined({"from the next tile of ", size, " keys, in the last one from the one before"})));
    stage.key = [tile](const Seen& s, Lookup& l) {
      const bool is_last = l.position / tile == (end_seen(s) - 1) / tile;
      const std::int64_t there = l.position + (is_last ? -tile : tile);
      if (there >= 0 && there <= last_of(s)) l.position = there;
    };
    Misreading& pair = all.emplace_back(of_operand(
        operand, "tiles_swapped" + of, joined({"from the other one of two tiles of ", size})));
    pair.key = [tile](const Seen& s, Lookup& l) {
      const std::int64_t there = l.position / tile % 2 == 0 ? l.position + tile : l.position - tile;
      if (there <= last_of(s)) l.position = there;
    };
  }
}

}  // namespace

void add_position_misreadings(std::vector<Misreading>& all) {
  for (const Quantity& quantity : quantities()) {
    for (const int sign : {-1, 1}) add_shifts(all, quantity, sign);
  }
  for (const Operand& operand : operands()) {
    Misreading& mirrored =
        all.emplace_back(of_operand(operand, "keys_in_reversed_order", "in reversed order"));
    mirrored.key = [](const Seen& s, Lookup& l) { l.position = last_of(s) - l.position; };
    Misreading& window = all.emplace_back(
        of_operand(operand, "position_modulo_the_window", "from the position modulo the window"));
    window.key = [](const Seen& s, Lookup& l) {
      if (s.view.model().window) l.position %= *s.view.model().window;
    };
  }
  for (const std::int64_t tile : {64, 16, 32, 128, 8}) add_tiles(all, tile);
}

}  // namespace attest
