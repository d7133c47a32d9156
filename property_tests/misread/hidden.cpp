// Keys that a row does not see and that count where they should not: later ones, those before the
// window, what pads a tile.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

/// Keys that a row does not see: [begin, end).
struct Hidden {
  std::string id, says;
  std::function<std::pair<std::int64_t, std::int64_t>(const Seen&)> range;
};

/// Where tiles are counted from, other than key 0.
struct Base {
  const char *id, *says;
  std::int64_t (*of)(const Seen&);
};
constexpr Base bases[] = {
    {"_from_the_window", ", counted from the window's begin", first_seen},
    {"_from_the_requests_window", ", counted from where the first row's window begins",
     first_seen_of_request}};

std::vector<Hidden> hidden_ranges() {
  std::vector<Hidden> all = {
      {"later_keys", "later keys of the request",
       [](const Seen& s) { return std::pair(end_seen(s), s.request().keys); }},
      {"keys_before_the_window", "keys before the window",
       [](const Seen& s) { return std::pair<std::int64_t, std::int64_t>(0, first_seen(s)); }},
      {"the_key_before_the_window", "the key before the window",
       [](const Seen& s) { return std::pair(first_seen(s) - 1, first_seen(s)); }},
      {"the_next_key", "the key behind the row's last",
       [](const Seen& s) { return std::pair(end_seen(s), end_seen(s) + 1); }},
      {"keys_before_the_window_since_the_first_rows", "keys since the first row's window began",
       [](const Seen& s) { return std::pair(first_seen_of_request(s), first_seen(s)); }},
  };
  for (const std::int64_t tile : {64, 16, 32, 128, 8, 4, 0}) {
    const auto size = [tile](const Seen& s) { return tile == 0 ? s.view.page : tile; };
    const std::string name = tile == 0 ? "page" : "tile_of_" + std::to_string(tile);
    const auto up = [size](const Seen& s, std::int64_t x) {
      return floor_div(x + size(s) - 1, size(s)) * size(s);
    };
    all.push_back({"the_rest_of_the_last_" + name, "the rest of the row's last " + name,
                   [up](const Seen& s) { return std::pair(end_seen(s), up(s, end_seen(s))); }});
    all.push_back(
        {"the_padding_of_the_last_" + name, "what pads the request's last " + name,
         [up](const Seen& s) { return std::pair(s.request().keys, up(s, s.request().keys)); }});
    for (const Base& base : bases) {
      all.push_back({"the_padding_of_the_last_" + name + base.id,
                     "what pads the request's last " + name + base.says,
                     [up, of = base.of](const Seen& s) {
                       const std::int64_t keys = s.request().keys;
                       return std::pair(keys, of(s) + up(s, keys - of(s)));
                     }});
    }
    all.push_back({"what_the_window_hides_of_its_first_" + name,
                   "what the window hides of the " + name + " it begins in", [size](const Seen& s) {
                     return std::pair(floor_div(first_seen(s), size(s)) * size(s), first_seen(s));
                   }});
  }
  return all;
}

void add_hidden(std::vector<Misreading>& all, const Hidden& hidden) {
  struct Way {
    const char* id;
    const char* says;
    bool zero_k, zero_v;
  };
  static const Way ways[] = {{"seen_", " count", false, false},
                             {"as_zeros_", " count as zeros, K and V", true, true},
                             {"as_score_0_", " count with score 0", true, false}};
  for (const Way& way : ways) {
    Misreading& one = all.emplace_back();
    one.id = way.id + hidden.id;
    one.says = hidden.says + way.says;
    one.keys = [range = hidden.range, &way](const Seen& s, std::vector<ReadKey>& keys) {
      const auto [begin, end] = range(s);
      const auto visible = keys;
      for (std::int64_t p = std::max<std::int64_t>(0, begin); p < end; ++p) {
        const bool seen = std::any_of(visible.begin(), visible.end(),
                                      [p](const ReadKey& key) { return key.position == p; });
        if (!seen) keys.push_back({p, way.zero_k, way.zero_v});
      }
    };
  }
}

}  // namespace

void add_hidden_misreadings(std::vector<Misreading>& all) {
  for (const Hidden& hidden : hidden_ranges()) add_hidden(all, hidden);
}

}  // namespace attest
