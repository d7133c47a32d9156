// Rows and heads of q that are read, masked or written in another one's place, and rows of the new
// tokens' tensors.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

using Source = std::optional<Place>;

struct PlaceMap {
  std::string id, says;
  std::function<Source(const Seen&)> of;
};

std::int64_t heads(const Seen& s) { return s.view.model().num_q_heads; }
std::int64_t all_rows(const Seen& s) {
  return static_cast<std::int64_t>(s.view.truth->rows.size());
}

/// A row of the request, by its token; nothing where it has none.
Source token_of(const Seen& s, std::int64_t token) {
  if (token < 0 || token >= s.request().rows) return std::nullopt;
  return Place{s.request().first_row + token, s.place.head};
}
Source row_of(const Seen& s, std::int64_t row) {
  if (row < 0 || row >= all_rows(s)) return std::nullopt;
  return Place{row, s.place.head};
}
Source head_of(const Seen& s, std::int64_t head) {
  if (head < 0 || head >= heads(s)) return std::nullopt;
  return Place{s.place.row, head};
}

void add_row_maps(std::vector<PlaceMap>& maps) {
  maps.insert(
      maps.end(),
      {{"next_row", "the row behind", [](const Seen& s) { return row_of(s, s.place.row + 1); }},
       {"previous_row", "the row before", [](const Seen& s) { return row_of(s, s.place.row - 1); }},
       {"next_row_of_the_request", "the next row of the request, the last one's its own",
        [](const Seen& s) { return token_of(s, std::min(s.token + 1, s.request().rows - 1)); }},
       {"previous_row_of_the_request", "the row before in the request, the first one's its own",
        [](const Seen& s) { return token_of(s, std::max<std::int64_t>(s.token - 1, 0)); }},
       {"first_row_of_the_request", "the request's first row",
        [](const Seen& s) { return token_of(s, 0); }},
       {"last_row_of_the_request", "the request's last row",
        [](const Seen& s) { return token_of(s, s.request().rows - 1); }},
       {"rows_in_reversed_order", "the request's rows in reversed order",
        [](const Seen& s) { return token_of(s, s.request().rows - 1 - s.token); }},
       {"row_0", "row 0", [](const Seen& s) { return row_of(s, 0); }},
       {"row_of_the_token", "the row of the token's number, as if request 0 were all",
        [](const Seen& s) { return row_of(s, s.token); }},
       {"row_of_the_request_number", "the row of the request's number",
        [](const Seen& s) { return row_of(s, s.number); }},
       {"rows_of_equal_lengths", "rows as if all requests had as many as the longest",
        [](const Seen& s) {
          std::int64_t most = 0;
          for (const ViewedRequest& r : s.view.requests) most = std::max(most, r.rows);
          return row_of(s, s.number * most + s.token);
        }},
       {"rows_token_by_token", "rows as if the first tokens of all requests came first",
        [](const Seen& s) {
          return row_of(s, s.token * static_cast<std::int64_t>(s.view.requests.size()) + s.number);
        }},
       {"rows_in_reversed_order_of_the_batch", "all rows in reversed order",
        [](const Seen& s) { return row_of(s, all_rows(s) - 1 - s.place.row); }},
       {"row_two_further", "the next row but one",
        [](const Seen& s) { return row_of(s, s.place.row + 2); }}});
  for (const OtherRequest& other : other_requests()) {
    maps.push_back({"row_of_" + other.id, "the same row of " + other.says,
                    [of = other.of](const Seen& s) -> Source {
                      const std::int64_t at = of(s);
                      if (at < 0) return s.place;
                      const ViewedRequest& r = s.view.requests[static_cast<std::size_t>(at)];
                      if (r.rows == 0) return s.place;
                      return Place{r.first_row + std::min(s.token, r.rows - 1), s.place.head};
                    }});
  }
  for (const std::int64_t block : {2, 4, 8, 16, 32, 64}) {
    const std::string n = std::to_string(block);
    maps.push_back({"first_row_of_blocks_of_" + n, "the first row of each " + n,
                    [block](const Seen& s) { return token_of(s, s.token / block * block); }});
    maps.push_back({"row_modulo_" + n, "the row modulo " + n,
                    [block](const Seen& s) { return token_of(s, s.token % block); }});
    maps.push_back({"last_row_of_" + n, "the row, but at most the one of number " + n,
                    [block](const Seen& s) { return token_of(s, std::min(s.token, block - 1)); }});
    maps.push_back(
        {"rows_up_to_" + n + "_only", "the row, beyond " + n + " nothing",
         [block](const Seen& s) { return s.token < block ? Source(s.place) : std::nullopt; }});
  }
}

void add_head_maps(std::vector<PlaceMap>& maps) {
  const auto group = [](const Seen& s) { return s.view.group(); };
  const auto kv = [](const Seen& s) { return s.view.model().num_kv_heads; };
  maps.insert(
      maps.end(),
      {{"next_q_head", "the next head, of the last one the first",
        [](const Seen& s) { return head_of(s, (s.place.head + 1) % heads(s)); }},
       {"previous_q_head", "the head before, of the first one the last",
        [](const Seen& s) { return head_of(s, (s.place.head + heads(s) - 1) % heads(s)); }},
       {"q_heads_one_late", "the head before, of the first one nobody",
        [](const Seen& s) { return head_of(s, s.place.head - 1); }},
       {"q_heads_one_early", "the next head, of the last one nobody",
        [](const Seen& s) { return head_of(s, s.place.head + 1); }},
       {"q_heads_in_reversed_order", "the heads in reversed order",
        [](const Seen& s) { return head_of(s, heads(s) - 1 - s.place.head); }},
       {"q_heads_swapped_in_pairs", "the other one of two heads",
        [](const Seen& s) { return head_of(s, std::min(s.place.head ^ 1, heads(s) - 1)); }},
       {"q_head_0", "head 0", [](const Seen& s) { return head_of(s, 0); }},
       {"first_q_head_of_the_group", "the first head of the group",
        [=](const Seen& s) { return head_of(s, s.place.head / group(s) * group(s)); }},
       {"last_q_head_of_the_group", "the last head of the group",
        [=](const Seen& s) { return head_of(s, (s.place.head / group(s) + 1) * group(s) - 1); }},
       {"group_in_reversed_order", "the heads of the group in reversed order",
        [=](const Seen& s) {
          const std::int64_t first = s.place.head / group(s) * group(s);
          return head_of(s, first + group(s) - 1 - s.place.head % group(s));
        }},
       {"same_head_of_the_next_group", "the same head of the next group",
        [=](const Seen& s) { return head_of(s, (s.place.head + group(s)) % heads(s)); }},
       {"groups_and_heads_swapped", "heads as if the groups' first ones came first",
        [=](const Seen& s) {
          return head_of(s, s.place.head % group(s) * kv(s) + s.place.head / group(s));
        }},
       {"heads_and_groups_swapped", "heads as if they were dealt to the groups in turn",
        [=](const Seen& s) {
          return head_of(s, s.place.head % kv(s) * group(s) + s.place.head / kv(s));
        }}});
  for (const std::int64_t block : {2, 4, 8, 16, 32}) {
    const std::string n = std::to_string(block);
    maps.push_back({"first_q_head_of_" + n, "the first head of each " + n,
                    [block](const Seen& s) { return head_of(s, s.place.head / block * block); }});
    maps.push_back({"q_head_modulo_" + n, "the head modulo " + n,
                    [block](const Seen& s) { return head_of(s, s.place.head % block); }});
  }
}

/// Rows and heads that are counted through in another order.
void add_transposed_maps(std::vector<PlaceMap>& maps) {
  maps.insert(maps.end(),
              {{"rows_and_heads_swapped", "rows and heads as if heads came first",
                [](const Seen& s) -> Source {
                  const std::int64_t at = s.place.row * heads(s) + s.place.head;
                  return Place{at % all_rows(s), at / all_rows(s)};
                }},
               {"heads_and_rows_swapped", "rows and heads as if written heads first",
                [](const Seen& s) -> Source {
                  const std::int64_t at = s.place.head * all_rows(s) + s.place.row;
                  return Place{at / heads(s), at % heads(s)};
                }},
               {"rows_and_heads_of_the_request_swapped",
                "a request's rows and heads as if heads came first",
                [](const Seen& s) -> Source {
                  const std::int64_t at = s.token * heads(s) + s.place.head;
                  return Place{s.request().first_row + at % s.request().rows,
                               at / s.request().rows};
                }},
               {"packed_rows_and_heads_swapped", "a group's packed rows as if its heads came first",
                [](const Seen& s) -> Source {
                  const std::int64_t group = s.view.group();
                  const std::int64_t first = s.place.head / group * group;
                  const std::int64_t rows = s.request().rows;
                  const std::int64_t at = s.packed();
                  return Place{s.request().first_row + at % rows, first + at / rows};
                }},
               {"packed_heads_and_rows_swapped", "a group's packed rows as if written heads first",
                [](const Seen& s) -> Source {
                  const std::int64_t group = s.view.group();
                  const std::int64_t first = s.place.head / group * group;
                  const std::int64_t at = s.place.head % group * s.request().rows + s.token;
                  return Place{s.request().first_row + at / group, first + at % group};
                }}});
}

void add_modes(std::vector<Misreading>& all, const PlaceMap& map) {
  Misreading& holds = all.emplace_back();
  holds.id = "output_of_" + map.id;
  holds.says = "the output holds " + map.says;
  holds.holds = map.of;
  Misreading& query = all.emplace_back();
  query.id = "q_of_" + map.id;
  query.says = "q is " + map.says;
  query.query = [of = map.of](const Seen& s) { return of(s).value_or(s.place); };
  Misreading& mask = all.emplace_back();
  mask.id = "keys_of_" + map.id;
  mask.says = "the keys that are seen are by number those of " + map.says;
  mask.keys = [of = map.of](const Seen& s, std::vector<ReadKey>& keys) {
    const std::int64_t row = of(s).value_or(s.place).row;
    if (row < 0 || row >= all_rows(s) || row == s.place.row) return;
    keys.clear();
    for (const std::int64_t p : s.view.positions(row)) keys.push_back({p});
  };
}

void add_new_rows(std::vector<Misreading>& all) {
  struct NewRow {
    std::string id, says;
    EditLookup edit;
  };
  const NewRow rows[] = {
      {"new_rows_without_the_first_row", "in new keys from row 0 on",
       [](const Seen& s, Lookup& l) { l.position -= s.request().first_row; }},
      {"new_row_always_the_first", "in new keys from the request's first row",
       [](const Seen& s, Lookup& l) { l.position = s.request().first_row; }},
      {"new_rows_in_reversed_order", "in new keys from the request's rows in reversed order",
       [](const Seen& s, Lookup& l) {
         l.position = 2 * s.request().first_row + s.request().rows - 1 - l.position;
       }},
      {"new_row_one_further", "in new keys from one row further",
       [](const Seen&, Lookup& l) { ++l.position; }},
      {"new_row_one_before", "in new keys from one row before",
       [](const Seen&, Lookup& l) { --l.position; }},
      {"new_rows_of_the_row", "in new keys from the row that is computed",
       [](const Seen& s, Lookup& l) { l.position = s.place.row; }},
      {"new_rows_in_kv_head_0", "in new keys from kv head 0",
       [](const Seen&, Lookup& l) { l.head = 0; }},
      {"new_rows_of_the_next_kv_head", "in new keys from the next kv head",
       [](const Seen& s, Lookup& l) { l.head = (l.head + 1) % s.view.model().num_kv_heads; }},
      {"new_rows_of_the_q_head", "in new keys from the kv head of the q head's number",
       [](const Seen& s, Lookup& l) { l.head = s.place.head % s.view.model().num_kv_heads; }},
  };
  for (const NewRow& row : rows) {
    for (const Operand& operand : operands()) {
      all.emplace_back(of_operand(operand, row.id, row.says)).fresh = row.edit;
    }
  }
}

}  // namespace

void add_row_misreadings(std::vector<Misreading>& all) {
  std::vector<PlaceMap> maps;
  add_row_maps(maps);
  add_transposed_maps(maps);
  const std::size_t with_masks = maps.size();
  add_head_maps(maps);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    add_modes(all, maps[i]);
    if (i >= with_masks) all.pop_back();  // heads have no masks of their own
  }
  add_new_rows(all);
}

}  // namespace attest
