// Query heads that read another kv head than their group's.

#include <algorithm>

#include "property_tests/misread/misreading.hpp"

namespace attest {
namespace {

struct HeadMap {
  std::string id, says;
  std::function<std::int64_t(const Seen&)> of;  ///< the kv head; taken modulo their number
};

std::int64_t kv_heads(const Seen& s) { return s.view.model().num_kv_heads; }
std::int64_t own(const Seen& s) { return s.place.head / s.view.group(); }

std::int64_t power_of_two_from(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

std::vector<HeadMap> head_maps() {
  std::vector<HeadMap> maps = {
      {"head_modulo_the_kv_heads", "the kv head of the q head's number modulo their number",
       [](const Seen& s) { return s.place.head; }},
      {"head_over_the_kv_heads", "the kv head of the q head's number over their number",
       [](const Seen& s) { return s.place.head / kv_heads(s); }},
      {"head_modulo_the_group", "the kv head of the q head's number modulo the group's size",
       [](const Seen& s) { return s.place.head % s.view.group(); }},
      {"previous_kv_head", "the kv head before", [](const Seen& s) { return own(s) - 1; }},
      {"kv_head_0", "kv head 0", [](const Seen&) -> std::int64_t { return 0; }},
      {"last_kv_head", "the last kv head", [](const Seen& s) { return kv_heads(s) - 1; }},
      {"kv_heads_in_reversed_order", "the kv heads in reversed order",
       [](const Seen& s) { return kv_heads(s) - 1 - own(s); }},
      {"kv_heads_swapped_in_pairs", "the other one of two kv heads",
       [](const Seen& s) { return own(s) ^ 1; }},
      {"even_kv_head", "the first one of two kv heads",
       [](const Seen& s) { return own(s) / 2 * 2; }},
      {"head_number_at_most_the_last", "the kv head of the q head's number, or the last",
       [](const Seen& s) { return std::min(s.place.head, kv_heads(s) - 1); }},
      {"group_one_larger", "a kv head by groups of one more",
       [](const Seen& s) { return s.place.head / (s.view.group() + 1); }},
      {"group_one_smaller", "a kv head by groups of one less",
       [](const Seen& s) { return s.place.head / std::max<std::int64_t>(1, s.view.group() - 1); }},
      {"group_doubled", "a kv head by groups twice as large",
       [](const Seen& s) { return s.place.head / (2 * s.view.group()); }},
      {"group_halved", "a kv head by groups half as large",
       [](const Seen& s) { return s.place.head / std::max<std::int64_t>(1, s.view.group() / 2); }},
      {"group_to_a_power_of_two", "a kv head by groups filled up to a power of two",
       [](const Seen& s) { return s.place.head / power_of_two_from(s.view.group()); }},
      {"group_cut_to_a_power_of_two", "a kv head by groups cut to a power of two",
       [](const Seen& s) { return s.place.head / ((power_of_two_from(s.view.group() + 1)) / 2); }},
      {"kv_head_two_further", "the next kv head but one", [](const Seen& s) { return own(s) + 2; }},
      {"kv_head_of_the_request", "the kv head of the request's number",
       [](const Seen& s) { return s.number; }},
      {"kv_head_further_by_the_request", "a kv head further by the request's number",
       [](const Seen& s) { return own(s) + s.number; }},
      {"kv_head_of_the_token", "the kv head of the row's number in its request",
       [](const Seen& s) { return s.token; }},
      {"kv_head_further_by_the_token", "a kv head further by the row's number in its request",
       [](const Seen& s) { return own(s) + s.token; }},
      {"kv_head_of_the_packed_row", "a kv head by the number of the row among all rows and heads",
       [](const Seen& s) {
         return (s.place.row * s.view.model().num_q_heads + s.place.head) / s.view.group();
       }},
  };
  for (const std::int64_t block : {2, 4, 8, 16, 32}) {
    const std::string n = std::to_string(block);
    maps.push_back(
        {"kv_head_of_blocks_of_" + n + "_heads", "the kv head of the first of " + n + " q heads",
         [block](const Seen& s) { return s.place.head / block * block / s.view.group(); }});
    maps.push_back({"kv_head_of_blocks_of_" + n + "_in_the_group",
                    "the kv head of the q head's block of " + n,
                    [block](const Seen& s) { return s.place.head / block; }});
    maps.push_back({"kv_head_of_the_packed_block_of_" + n,
                    "the kv head of the first row and head of " + n + " packed ones",
                    [block](const Seen& s) {
                      const std::int64_t heads = s.view.model().num_q_heads;
                      const std::int64_t at = (s.token * heads + s.place.head) / block * block;
                      return at % heads / s.view.group();
                    }});
  }
  return maps;
}

}  // namespace

void add_head_misreadings(std::vector<Misreading>& all) {
  for (const HeadMap& map : head_maps()) {
    for (const Operand& operand : operands()) {
      if (map.id == "kv_head_0" && operand.prefix.empty()) continue;  // hypotheses.cpp has it
      Misreading& one = all.emplace_back(of_operand(operand, map.id, "from " + map.says));
      one.key = [of = map.of](const Seen& s, Lookup& l) {
        const std::int64_t heads = kv_heads(s);
        l.head = (of(s) % heads + heads) % heads;
      };
      Misreading& last = all.emplace_back(
          of_operand(operand, map.id + "_or_the_last", "from " + map.says + ", at most the last"));
      last.key = [of = map.of](const Seen& s, Lookup& l) {
        l.head = std::clamp<std::int64_t>(of(s), 0, kv_heads(s) - 1);
      };
    }
  }
}

}  // namespace attest
