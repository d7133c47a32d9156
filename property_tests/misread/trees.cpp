// Draft trees whose masks are read wrongly: another row, column, request, order or length of them.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"
#include "property_tests/misread/tree_bits.hpp"

namespace attest {
namespace {

/// All masks of a batch end to end, as they are passed: rows as wide as there are new tokens, or as
/// keys. Entries of committed keys are set.
std::int64_t width(const Seen& s, const ViewedRequest& r) {
  return s.view.mask_has_prefix ? r.keys : r.rows;
}
std::int64_t mask_begin(const Seen& s, std::int64_t number) {
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < number; ++i) {
    const ViewedRequest& r = s.view.requests[static_cast<std::size_t>(i)];
    begin += r.rows * width(s, r);
  }
  return begin;
}
bool flat_bit(const Seen& s, std::int64_t at) {
  for (std::size_t i = 0; at >= 0 && i < s.view.requests.size(); ++i) {
    const ViewedRequest& r = s.view.requests[i];
    const std::int64_t entries = r.rows * width(s, r);
    if (at >= entries) {
      at -= entries;
      continue;
    }
    const std::int64_t column = at % width(s, r) - (s.view.mask_has_prefix ? r.committed() : 0);
    return column < 0 || mask_bit_of(s, static_cast<std::int64_t>(i), at / width(s, r), column);
  }
  return false;
}

void add_rows_and_columns(std::vector<Misreading>& all) {
  struct Simple {
    const char* id;
    const char* says;
    bool (*read)(const Seen&, std::int64_t, std::int64_t);
  };
  using I = std::int64_t;
  static const Simple simple[] = {
      {"mask_transposed", "the mask is read with rows and columns swapped",
       [](const Seen& s, I t, I u) { return mask_bit(s, u, t); }},
      {"mask_full", "every draft sees all drafts", [](const Seen&, I, I) { return true; }},
      {"own_key_only", "drafts see themselves and no other",
       [](const Seen&, I t, I u) { return t == u; }},
      {"own_key_hidden", "drafts do not see themselves",
       [](const Seen& s, I t, I u) { return t != u && mask_bit(s, t, u); }},
      {"own_key_always_seen_with_all_before", "drafts see all drafts before, not themselves",
       [](const Seen&, I t, I u) { return u < t; }},
      {"parent_only", "drafts see themselves and their parent only",
       [](const Seen& s, I t, I u) {
         return t == u || tree_parents(s, s.number)[static_cast<std::size_t>(t)] == u;
       }},
      {"root_only", "drafts see themselves and the first draft only",
       [](const Seen&, I t, I u) { return t == u || u == 0; }},
      {"root_hidden", "drafts do not see the first one",
       [](const Seen& s, I t, I u) { return u != 0 && mask_bit(s, t, u); }},
      {"drafts_unseen", "drafts see committed keys only", [](const Seen&, I, I) { return false; }},
      {"mask_inverted", "the mask hides what it should show",
       [](const Seen& s, I t, I u) { return !mask_bit(s, t, u); }},
      {"mask_added_to_causal_order", "drafts see what the mask or the causal order shows",
       [](const Seen& s, I t, I u) { return u <= t || mask_bit(s, t, u); }},
      {"mask_row_0", "every draft has the mask's first row",
       [](const Seen& s, I, I u) { return mask_bit(s, 0, u); }},
      {"mask_row_last", "every draft has the mask's last row",
       [](const Seen& s, I, I u) { return mask_bit(s, s.request().rows - 1, u); }},
      {"mask_rows_reversed", "the mask's rows are read in reversed order",
       [](const Seen& s, I t, I u) { return mask_bit(s, s.request().rows - 1 - t, u); }},
      {"mask_columns_reversed", "the mask's columns are read in reversed order",
       [](const Seen& s, I t, I u) { return mask_bit(s, t, s.request().rows - 1 - u); }},
      {"mask_bits_of_bytes_reversed", "each eight columns of the mask are read in reversed order",
       [](const Seen& s, I t, I u) { return mask_bit(s, t, u ^ 7); }},
      {"mask_row_is_the_packed_row", "the mask's row is the number among packed rows",
       [](const Seen& s, I, I u) { return mask_bit(s, s.packed(), u); }},
      {"mask_row_of_the_batch", "the mask's row is the row's number in the batch",
       [](const Seen& s, I, I u) { return mask_bit(s, s.place.row, u); }},
      {"mask_row_of_the_head", "the mask's row is the q head's number",
       [](const Seen& s, I, I u) { return mask_bit(s, s.place.head, u); }},
      {"mask_column_with_the_prefix", "the mask's column counts committed keys",
       [](const Seen& s, I t, I u) { return mask_bit(s, t, u + s.request().committed()); }},
      {"mask_packed_row_modulo_the_rows", "the mask's row is the packed one modulo their number",
       [](const Seen& s, I, I u) { return mask_bit(s, s.packed() % s.request().rows, u); }},
  };
  for (const Simple& one : simple) add_tree_mistake(all, one.id, one.says, one.read);
  for (const I by : {1, -1, 2, -2}) {
    const std::string n = (by < 0 ? "minus_" : "plus_") + std::to_string(std::abs(by));
    add_tree_mistake(all, "mask_row_" + n, "the mask's row is off by " + std::to_string(by),
                     [by](const Seen& s, I t, I u) {
                       return mask_bit(s, std::clamp<I>(t + by, 0, s.request().rows - 1), u);
                     });
    add_tree_mistake(all, "mask_column_" + n, "the mask's column is off by " + std::to_string(by),
                     [by](const Seen& s, I t, I u) { return mask_bit(s, t, u + by); });
  }
  for (const OtherRequest& other : other_requests()) {
    add_tree_mistake(all, "mask_of_" + other.id, "the mask is that of " + other.says,
                     [of = other.of](const Seen& s, I t, I u) {
                       const I at = of(s);
                       return mask_bit_of(s, at < 0 ? s.number : at, t, u);
                     });
  }
}

void add_words(std::vector<Misreading>& all) {
  using I = std::int64_t;
  for (const I bits : {8, 16, 32, 64, 4, 2, 1}) {
    const std::string n = std::to_string(bits);
    add_tree_mistake(all, "first_" + n + "_columns_only",
                     "the mask's first " + n + " columns alone are read",
                     [bits](const Seen& s, I t, I u) { return u < bits && mask_bit(s, t, u); });
    add_tree_mistake(all, "first_" + n + "_columns_then_all",
                     "the mask hides nothing after " + n + " columns",
                     [bits](const Seen& s, I t, I u) { return u >= bits || mask_bit(s, t, u); });
    add_tree_mistake(
        all, "first_" + n + "_columns_then_causal",
        "after " + n + " columns the causal order holds",
        [bits](const Seen& s, I t, I u) { return u < bits ? mask_bit(s, t, u) : u <= t; });
    add_tree_mistake(all, "columns_repeat_after_" + n, "the mask's columns repeat after " + n,
                     [bits](const Seen& s, I t, I u) { return mask_bit(s, t, u % bits); });
    add_tree_mistake(all, "columns_and_rows_repeat_after_" + n, "the mask repeats after " + n,
                     [bits](const Seen& s, I t, I u) { return mask_bit(s, t % bits, u % bits); });
    add_tree_mistake(all, "rows_repeat_after_" + n, "the mask's rows repeat after " + n,
                     [bits](const Seen& s, I t, I u) { return mask_bit(s, t % bits, u); });
    add_tree_mistake(all, "mask_row_of_blocks_of_" + n,
                     "each " + n + " drafts have the first one's row",
                     [bits](const Seen& s, I t, I u) { return mask_bit(s, t / bits * bits, u); });
    add_tree_mistake(
        all, "columns_end_with_blocks_of_" + n,
        "keys after the row's own block of " + n + " are unseen",
        [bits](const Seen& s, I t, I u) { return u / bits <= t / bits && mask_bit(s, t, u); });
    add_tree_mistake(all, "columns_of_whole_blocks_of_" + n + "_only",
                     "drafts after the last whole block of " + n + " are unseen",
                     [bits](const Seen& s, I t, I u) {
                       return u < s.request().rows / bits * bits && mask_bit(s, t, u);
                     });
  }
}

/// Rows that are taken to lie further apart, or to begin elsewhere.
void add_strides(std::vector<Misreading>& all) {
  struct Number {
    const char* id;
    const char* says;
    std::int64_t (*of)(const Seen&);
  };
  static const Number strides[] = {
      {"new_tokens", "as many as new tokens", [](const Seen& s) { return s.request().rows; }},
      {"keys", "as many as keys", [](const Seen& s) { return s.request().keys; }},
      {"committed", "as many as committed keys",
       [](const Seen& s) { return s.request().committed(); }},
      {"one_more", "one too many", [](const Seen& s) { return width(s, s.request()) + 1; }},
      {"one_less", "one too few", [](const Seen& s) { return width(s, s.request()) - 1; }},
      {"the_longest", "as many as keys of the longest request",
       [](const Seen& s) { return longest(s.view); }},
      {"blocks_of_8", "filled up to a multiple of eight",
       [](const Seen& s) { return (width(s, s.request()) + 7) / 8 * 8; }},
      {"blocks_of_16", "filled up to a multiple of 16",
       [](const Seen& s) { return (width(s, s.request()) + 15) / 16 * 16; }},
  };
  static const Number begins[] = {
      {"their_own", "", [](const Seen& s) { return mask_begin(s, s.number); }},
      {"the_first_mask", ", from the first request's mask on",
       [](const Seen&) -> std::int64_t { return 0; }},
      {"squares", ", masks taken to be squares",
       [](const Seen& s) {
         std::int64_t sum = 0;
         for (std::int64_t i = 0; i < s.number; ++i) {
           const std::int64_t rows = s.view.requests[static_cast<std::size_t>(i)].rows;
           sum += rows * rows;
         }
         return sum;
       }},
      {"equal_masks", ", masks taken to be as large as its own",
       [](const Seen& s) { return s.number * s.request().rows * width(s, s.request()); }},
      {"first_row_squared", ", masks taken to begin by the request's first row",
       [](const Seen& s) { return s.request().first_row * s.request().rows; }},
      {"one_late", ", one entry late", [](const Seen& s) { return mask_begin(s, s.number) + 1; }},
      {"one_early", ", one entry early", [](const Seen& s) { return mask_begin(s, s.number) - 1; }},
  };
  for (const Number& begin : begins) {
    for (const Number& stride : strides) {
      for (const bool with_prefix : {true, false}) {
        add_tree_mistake(all,
                         std::string("mask_rows_by_") + stride.id + "_from_" + begin.id +
                             (with_prefix ? "" : "_without_prefix"),
                         std::string("the mask's rows are taken to be ") + stride.says + " apart" +
                             begin.says + (with_prefix ? "" : ", columns without committed keys"),
                         [of = stride.of, from = begin.of, with_prefix](
                             const Seen& s, std::int64_t t, std::int64_t u) {
                           const bool prefix = s.view.mask_has_prefix && with_prefix;
                           const std::int64_t column = u + (prefix ? s.request().committed() : 0);
                           return flat_bit(s, from(s) + t * of(s) + column);
                         });
      }
    }
  }
}

}  // namespace

const std::vector<std::int64_t>& tree_parents(const Seen& seen, std::int64_t request) {
  return seen.view.source->problem().requests[static_cast<std::size_t>(request)].tree_parent;
}

bool mask_bit_of(const Seen& seen, std::int64_t request, std::int64_t token, std::int64_t column) {
  const auto& parent = tree_parents(seen, request);
  const auto rows = static_cast<std::int64_t>(parent.size());
  if (token < 0 || token >= rows || column < 0 || column >= rows) return false;
  for (std::int64_t t = token; t >= 0; t = parent[static_cast<std::size_t>(t)]) {
    if (t == column) return true;
  }
  return false;
}

bool mask_bit(const Seen& seen, std::int64_t token, std::int64_t column) {
  return mask_bit_of(seen, seen.number, token, column);
}

void add_tree_mistake(std::vector<Misreading>& all, const std::string& id, const std::string& says,
                      const MaskBit& read) {
  Misreading& one = all.emplace_back();
  one.id = "tree_" + id;
  one.says = "of draft trees, " + says;
  one.keys = [read](const Seen& s, std::vector<ReadKey>& keys) {
    if (!s.request().tree) return;
    keys.clear();
    for (std::int64_t p = 0; p < s.request().committed(); ++p) keys.push_back({p});
    for (std::int64_t u = 0; u < s.request().rows; ++u) {
      if (read(s, s.token, u)) keys.push_back({s.request().committed() + u});
    }
  };
}

void add_tree_misreadings(std::vector<Misreading>& all) {
  add_rows_and_columns(all);
  add_words(all);
  add_strides(all);
}

}  // namespace attest
