// Parts of what a row sees that are left out, count twice or count as zeros.

#include <algorithm>
#include <utility>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

/// Which of a row's keys a mistake is about.
struct Part {
  std::string id, says;
  std::function<bool(const Seen&, std::int64_t position)> covers;
};

std::int64_t committed(const Seen& s) { return s.request().committed(); }

void add_whole_parts(std::vector<Part>& parts) {
  parts.insert(
      parts.end(),
      {{"the_last_key", "the row's last key",
        [](const Seen& s, std::int64_t p) { return p == end_seen(s) - 1; }},
       {"the_first_key", "the row's first key",
        [](const Seen& s, std::int64_t p) { return p == first_seen(s); }},
       {"key_0", "key 0", [](const Seen&, std::int64_t p) { return p == 0; }},
       {"the_newest_committed_key", "the newest committed key",
        [](const Seen& s, std::int64_t p) { return p == committed(s) - 1; }},
       {"the_first_new_key", "the request's first new key",
        [](const Seen& s, std::int64_t p) { return p == committed(s); }},
       {"the_requests_last_key", "the request's last key",
        [](const Seen& s, std::int64_t p) { return p == s.request().keys - 1; }},
       {"new_keys", "all new keys",
        [](const Seen& s, std::int64_t p) { return p >= committed(s); }},
       {"other_new_keys", "new keys other than its own",
        [](const Seen& s, std::int64_t p) { return p >= committed(s) && p != s.position(); }},
       {"the_committed_keys", "all committed keys",
        [](const Seen& s, std::int64_t p) { return p < committed(s); }},
       {"the_last_odd_key", "the last key of an odd number",
        [](const Seen& s, std::int64_t p) { return p == end_seen(s) - 1 && p % 2 == 0; }},
       {"odd_keys", "every second key", [](const Seen&, std::int64_t p) { return p % 2 == 1; }},
       {"the_second_half", "the second half of its keys",
        [](const Seen& s, std::int64_t p) { return p >= (first_seen(s) + end_seen(s)) / 2; }},
       {"the_first_half", "the first half of its keys",
        [](const Seen& s, std::int64_t p) { return p < (first_seen(s) + end_seen(s)) / 2; }}});
}

/// A row's own key, in rows that a kernel comes to late.
void add_own_keys(std::vector<Part>& parts) {
  for (const std::int64_t rows : {0, 1, 2, 4, 8, 16, 32, 64, 128}) {
    const std::string behind = rows == 0 ? "" : "_behind_row_" + std::to_string(rows);
    const std::string says =
        rows == 0 ? "" : ", of rows behind their request's first " + std::to_string(rows) + ",";
    parts.push_back(
        {"the_own_key" + behind, "the row's own key" + says,
         [rows](const Seen& s, std::int64_t p) { return p == s.position() && s.token >= rows; }});
  }
}

/// What splits of equally many whole tiles leave over.
void add_split_remainders(std::vector<Part>& parts) {
  for (const std::int64_t tile : {64, 16, 32, 128, 0}) {
    for (const std::int64_t splits : {2, 3, 4, 8, 16, 32}) {
      const std::string n = std::to_string(splits);
      const std::string size = tile == 0 ? "pages" : "tiles_of_" + std::to_string(tile);
      std::string id = "what_";
      id.append(n).append("_splits_leave_over_in_").append(size);
      std::string says = "what ";
      says.append(n).append(" splits of equally many whole ").append(size).append(" leave over");
      parts.push_back(
          {std::move(id), std::move(says), [tile, splits](const Seen& s, std::int64_t p) {
             const std::int64_t keys = tile == 0 ? s.view.page : tile;
             const std::int64_t tiles = (s.request().keys + keys - 1) / keys;
             return p >= splits * std::max<std::int64_t>(1, tiles / splits) * keys;
           }});
    }
  }
}

/// Where tiles are counted from, and where the last one ends.
struct Tiling {
  std::string id, says;
  std::int64_t (*base)(const Seen&, std::int64_t position);
  std::int64_t (*end)(const Seen&, std::int64_t position);
};
std::int64_t zero(const Seen&, std::int64_t) { return 0; }
std::int64_t row_end(const Seen& s, std::int64_t) { return end_seen(s); }
std::int64_t request_end(const Seen& s, std::int64_t) { return s.request().keys; }
/// Committed keys in one pass, new ones in another.
std::int64_t pass_base(const Seen& s, std::int64_t p) {
  return p < committed(s) ? 0 : committed(s);
}
std::int64_t pass_end(const Seen& s, std::int64_t p) {
  return p < committed(s) ? committed(s) : end_seen(s);
}
const Tiling tilings[] = {
    {"", "", zero, row_end},
    {"_of_the_request", " of the request", zero, request_end},
    {"_of_the_prefix", " of the committed keys", zero,
     [](const Seen& s, std::int64_t) { return committed(s); }},
    {"_of_the_new_keys", " of the new keys",
     [](const Seen& s, std::int64_t) { return committed(s); }, row_end},
    {"_of_each_pass", " of the committed keys and of the new ones", pass_base, pass_end},
    {"_of_each_pass_of_the_request", " of the committed keys and of all new ones", pass_base,
     [](const Seen& s, std::int64_t p) {
       return p < committed(s) ? committed(s) : s.request().keys;
     }},
    {"_of_each_pass_of_the_window", " of the committed keys in the window and of the new ones",
     [](const Seen& s, std::int64_t p) {
       return p < committed(s) ? first_seen_of_request(s) : committed(s);
     },
     pass_end},
    {"_of_the_window", ", counted from the window's begin",
     [](const Seen& s, std::int64_t) { return first_seen(s); }, row_end},
    {"_of_the_requests_window", ", counted from where the first row's window begins",
     [](const Seen& s, std::int64_t) { return first_seen_of_request(s); }, request_end},
};

void add_tile_parts(std::vector<Part>& parts, const std::string& name, const Tiling& tiling,
                    const std::function<std::int64_t(const Seen&)>& size) {
  const auto in = [base = tiling.base, end = tiling.end, size](const Seen& s, std::int64_t p,
                                                               auto&& which) {
    const std::int64_t at = p - base(s, p);
    const std::int64_t count = end(s, p) - base(s, p);
    return at >= 0 && at < count && which(at, count, size(s));
  };
  const auto add = [&](const std::string& id, const std::string& says, auto which) {
    parts.push_back({id + name + tiling.id, says + name + tiling.says,
                     [in, which](const Seen& s, std::int64_t p) { return in(s, p, which); }});
  };
  using I = std::int64_t;
  add("the_part_after_the_last_whole_", "what is behind the last whole ",
      [](I at, I count, I tile) { return at >= count / tile * tile; });
  add("the_last_", "the last ",
      [](I at, I count, I tile) { return at / tile == (count - 1) / tile; });
  add("the_full_last_", "where it is full, the last ",
      [](I at, I count, I tile) { return count % tile == 0 && at / tile == (count - 1) / tile; });
  add("the_last_but_one_", "the last but one ",
      [](I at, I count, I tile) { return at / tile == (count - 1) / tile - 1; });
  add("the_first_", "the first ", [](I at, I, I tile) { return at < tile; });
  add("the_second_", "the second ", [](I at, I, I tile) { return at / tile == 1; });
  add("all_but_the_first_", "all but the first ", [](I at, I, I tile) { return at >= tile; });
  add("the_middle_", "all but the first and the last ",
      [](I at, I count, I tile) { return at >= tile && at / tile != (count - 1) / tile; });
  add("odd_", "every second ", [](I at, I, I tile) { return at / tile % 2 == 1; });
  add("the_first_key_of_each_", "the first key of each ",
      [](I at, I, I tile) { return at % tile == 0; });
  add("the_last_key_of_each_", "the last key of each ",
      [](I at, I, I tile) { return at % tile == tile - 1; });
  add("the_first_key_of_each_later_", "the first key of each later ",
      [](I at, I, I tile) { return at > 0 && at % tile == 0; });
  add("the_last_odd_key_of_each_", "the last key, where their number is odd, of each ",
      [](I at, I count, I tile) {
        const I last = std::min(count, (at / tile + 1) * tile) - 1;
        return at == last && (last % tile) % 2 == 0;
      });
}

/// What happens to a part.
struct Effect {
  std::string id, says;
  bool dropped = false, zero_k = false, zero_v = false;  ///< none: it counts twice
};
const Effect effects[] = {
    {"without_", " do not count", true, false, false},
    {"v_zero_of_", " count with V = 0", false, false, true},
    {"score_0_of_", " count with score 0", false, true, false},
    {"zeros_for_", " count as zeros, K and V", false, true, true},
    {"twice_", " count twice", false, false, false},
};

void add_effects(std::vector<Misreading>& all, const Part& part) {
  for (const Effect& effect : effects) {
    Misreading& one = all.emplace_back();
    one.id = effect.id + part.id;
    one.says = "of a row's keys, " + part.says + effect.says;
    one.keys = [covers = part.covers, &effect](const Seen& s, std::vector<ReadKey>& keys) {
      std::vector<ReadKey> edited;
      for (const ReadKey& key : keys) {
        const bool hit = covers(s, key.position);
        if (hit && effect.dropped) continue;
        edited.push_back({key.position, hit && effect.zero_k, hit && effect.zero_v});
        if (hit && !effect.zero_k && !effect.zero_v) edited.push_back(key);
      }
      keys = std::move(edited);
    };
  }
}

void add_elements(std::vector<Misreading>& all) {
  for (const std::int64_t block : {8, 16, 32, 64, 128}) {
    const std::string n = std::to_string(block);
    const auto whole = [block](const KernelView&, std::int64_t dim) {
      return dim < block ? dim : dim / block * block;
    };
    Misreading& k = all.emplace_back();
    k.id = "k_elements_in_whole_blocks_of_" + n;
    k.says = "scores leave out elements after the last whole " + n;
    k.k_elements = whole;
    Misreading& v = all.emplace_back();
    v.id = "v_elements_in_whole_blocks_of_" + n;
    v.says = "outputs are zero after the last whole " + n + " elements";
    v.v_elements = whole;
    const auto most = [block](const KernelView&, std::int64_t dim) { return std::min(dim, block); };
    Misreading& few = all.emplace_back();
    few.id = "k_elements_at_most_" + n;
    few.says = "scores are made of the first " + n + " elements";
    few.k_elements = most;
    Misreading& few_v = all.emplace_back();
    few_v.id = "v_elements_at_most_" + n;
    few_v.says = "outputs are zero after the first " + n + " elements";
    few_v.v_elements = most;
  }
}

}  // namespace

void add_part_misreadings(std::vector<Misreading>& all) {
  std::vector<Part> parts;
  add_whole_parts(parts);
  add_own_keys(parts);
  add_split_remainders(parts);
  for (const Tiling& tiling : tilings) {
    for (const std::int64_t tile : {64, 16, 32, 128, 8, 256}) {
      add_tile_parts(parts, "tile_of_" + std::to_string(tile), tiling,
                     [tile](const Seen&) { return tile; });
    }
    add_tile_parts(parts, "page", tiling, [](const Seen& s) { return s.view.page; });
    for (const std::int64_t splits : {2, 4, 8}) {
      add_tile_parts(parts, "share_of_" + std::to_string(splits), tiling,
                     [splits, &tiling](const Seen& s) {
                       return std::max<std::int64_t>(
                           1, (tiling.end(s, 0) - tiling.base(s, 0) + splits - 1) / splits);
                     });
    }
  }
  for (const Part& part : parts) add_effects(all, part);
  add_elements(all);
}

}  // namespace attest
