// Keys that come from another place of the lists or of the pool: other requests' lists, other
// begins, pages and page sizes.

#include <algorithm>

#include "property_tests/misread/quantities.hpp"

namespace attest {
namespace {

/// The part of a request's keys that comes from elsewhere.
struct Scope {
  std::string id, says;
  bool (*covers)(const Seen&, const Lookup&);
};
const Scope scopes[] = {
    {"", "", [](const Seen&, const Lookup&) { return true; }},
    {"first_page_", "of the first page ",
     [](const Seen& s, const Lookup& l) { return l.position < s.view.page; }},
    {"committed_keys_", "of committed tokens ",
     [](const Seen& s, const Lookup& l) { return l.position < s.request().committed(); }},
    {"new_keys_", "of new tokens ",
     [](const Seen& s, const Lookup& l) { return l.position >= s.request().committed(); }},
    {"last_page_", "of the last page ",
     [](const Seen& s, const Lookup& l) {
       return l.position / s.view.page == (s.request().keys - 1) / s.view.page;
     }},
};

void add_other_requests(std::vector<Misreading>& all) {
  for (const OtherRequest& other : other_requests()) {
    for (const Scope& scope : scopes) {
      for (const Operand& operand : operands()) {
        Misreading& one = all.emplace_back(
            of_operand(operand, scope.id + "from_" + other.id, scope.says + "from " + other.says));
        one.key = [of = other.of, covers = scope.covers](const Seen& s, Lookup& l) {
          const std::int64_t from = of(s);
          if (from >= 0 && covers(s, l)) l.request = from;
        };
      }
    }
  }
}

/// Where request i's list is taken to begin.
struct Begin {
  std::string id, says;
  std::function<std::int64_t(const Seen&)> of;
};

std::int64_t pages(const KernelView& view, std::int64_t keys) {
  return (keys + view.page - 1) / view.page;
}

std::vector<Begin> begins() {
  const auto packed = [](std::int64_t (*length)(const KernelView&, const ViewedRequest&)) {
    return [length](const Seen& s) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < s.number; ++i) {
        sum += length(s.view, s.view.requests[static_cast<std::size_t>(i)]);
      }
      return sum;
    };
  };
  const auto fixed = [](std::int64_t (*stride)(const KernelView&)) {
    return [stride](const Seen& s) { return s.request().table_row * stride(s.view); };
  };
  return {
      {"the_longest_list", "as if lists were as long as the longest one",
       fixed([](const KernelView& v) { return pages(v, longest(v)); })},
      {"the_most_keys", "as if lists lay as far apart as the most keys are",
       fixed([](const KernelView& v) { return longest(v); })},
      {"the_longest_prefix", "as if lists were as long as the longest prefix",
       fixed([](const KernelView& v) {
         std::int64_t most = 0;
         for (const ViewedRequest& r : v.requests) most = std::max(most, r.committed());
         return pages(v, most);
       })},
      {"one_column_less", "as if the table had one column less",
       fixed([](const KernelView& v) { return v.columns - 1; })},
      {"one_column_more", "as if the table had one column more",
       fixed([](const KernelView& v) { return v.columns + 1; })},
      {"columns_of_keys", "as if the table had a column for each key of its pages",
       fixed([](const KernelView& v) { return v.columns * v.page; })},
      {"columns_of_pages", "as if a column of the table were a page's",
       fixed([](const KernelView& v) { return v.columns / v.page; })},
      {"even_columns", "as if the table's columns were filled up to a multiple of 4",
       fixed([](const KernelView& v) { return (v.columns + 3) / 4 * 4; })},
      {"columns_to_16", "as if the table's columns were filled up to a multiple of 16",
       fixed([](const KernelView& v) { return (v.columns + 15) / 16 * 16; })},
      {"table_columns_of_the_batch", "as if the table had a column for each request",
       fixed([](const KernelView& v) { return static_cast<std::int64_t>(v.requests.size()); })},
      {"packed_lists", "as if lists lay end to end",
       packed([](const KernelView& v, const ViewedRequest& r) { return pages(v, r.keys); })},
      {"packed_keys", "as if lists lay end to end with an entry a key",
       packed([](const KernelView&, const ViewedRequest& r) { return r.keys; })},
      {"packed_whole_pages", "as if lists lay end to end without their last parts of pages",
       packed([](const KernelView& v, const ViewedRequest& r) { return r.keys / v.page; })},
      {"packed_prefixes", "as if lists held committed keys only",
       packed([](const KernelView& v, const ViewedRequest& r) { return pages(v, r.committed()); })},
      {"first_row", "as if lists began with the request's first row",
       [](const Seen& s) { return s.request().first_row; }},
      {"nothing", "from the first list on", [](const Seen&) -> std::int64_t { return 0; }},
      {"the_request_number", "as if a table row had the request's number",
       [](const Seen& s) { return s.number * s.view.columns; }},
      {"text_without_encoder", "as if no encoder stood before the text",
       [](const Seen& s) { return s.request().begin - s.request().encoder; }},
      {"encoder_twice", "as if the encoder stood before the text twice",
       [](const Seen& s) { return s.request().begin + s.request().encoder; }},
      {"one_entry_late", "from the second entry on",
       [](const Seen& s) { return s.request().begin + 1; }},
      {"one_entry_early", "from the entry before the list on",
       [](const Seen& s) { return s.request().begin - 1; }},
      {"as_many_late_as_requests_before", "one entry later for each request before",
       [](const Seen& s) { return s.request().begin + s.number; }},
      {"as_many_early_as_requests_before", "one entry earlier for each request before",
       [](const Seen& s) { return s.request().begin - s.number; }},
      {"in_keys", "as if begins counted keys, not entries",
       [](const Seen& s) { return s.request().begin / s.view.page; }},
      {"in_pages", "as if begins counted pages, not entries",
       [](const Seen& s) { return s.request().begin * s.view.page; }},
  };
}

void add_begins(std::vector<Misreading>& all) {
  for (const Begin& begin : begins()) {
    for (const Operand& operand : operands()) {
      Misreading& one =
          all.emplace_back(of_operand(operand, "lists_begin_by_" + begin.id, begin.says));
      one.entry = [of = begin.of](const Seen& s, Lookup& l) {
        l.index += of(s) - s.view.requests[static_cast<std::size_t>(l.request)].begin;
      };
    }
  }
}

/// Another entry, or another page than the entry says.
struct PageEdit {
  std::string id, says;
  EditLookup entry = {}, address = {};
};

std::int64_t logical(const Seen& s, const Lookup& l) { return l.index - s.request().begin; }
std::int64_t last_logical(const Seen& s) { return (s.request().keys - 1) / s.view.page; }

EditLookup page_is(std::int64_t (*of)(std::int64_t)) {
  return [of](const Seen&, Lookup& l) { l.page = of(l.page); };
}

std::vector<PageEdit> page_edits() {
  using Edit = Lookup;
  const auto at = [](std::int64_t (*of)(const Seen&, std::int64_t)) {
    return [of](const Seen& s, Edit& l) { l.index = s.request().begin + of(s, logical(s, l)); };
  };
  return {
      {"page_id_in_16_bits",
       "from pages whose ids lost all but 16 bits",
       {},
       page_is([](std::int64_t p) { return p & 0xffff; })},
      {"page_id_in_15_bits",
       "from pages whose ids lost all but 15 bits",
       {},
       page_is([](std::int64_t p) { return p & 0x7fff; })},
      {"page_id_in_8_bits",
       "from pages whose ids lost all but 8 bits",
       {},
       page_is([](std::int64_t p) { return p & 0xff; })},
      {"page_id_in_signed_8_bits",
       "from pages whose ids became 8-bit numbers",
       {},
       page_is([](std::int64_t p) -> std::int64_t { return static_cast<std::int8_t>(p); })},
      {"page_id_in_signed_16_bits",
       "from pages whose ids became 16-bit numbers",
       {},
       page_is([](std::int64_t p) -> std::int64_t { return static_cast<std::int16_t>(p); })},
      {"page_id_one_more", "from the pages behind, in the pool", {}, page_is([](std::int64_t p) {
         return p + 1;
       })},
      {"page_id_one_less", "from the pages before, in the pool", {}, page_is([](std::int64_t p) {
         return std::max<std::int64_t>(0, p - 1);
       })},
      {"page_id_even", "from pages of even ids", {}, page_is([](std::int64_t p) {
         return p / 2 * 2;
       })},
      {"page_0_always", "from page 0", {}, page_is([](std::int64_t) -> std::int64_t { return 0; })},
      {"table_ignored",
       "from the page of the column's number",
       {},
       [](const Seen& s, Edit& l) { l.page = logical(s, l); }},
      {"entry_number_as_page",
       "from the page of the entry's number",
       {},
       [](const Seen&, Edit& l) { l.page = l.index; }},
      {"pages_taken_as_contiguous",
       "from the pages behind the first one",
       {},
       [](const Seen& s, Edit& l) {
         const auto first = static_cast<std::size_t>(s.request().begin);
         if (first < s.view.entries.size()) l.page = s.view.entries[first] + logical(s, l);
       }},
      {"first_page_always", "from the first page",
       at([](const Seen&, std::int64_t) -> std::int64_t { return 0; })},
      {"last_page_always", "from the last page",
       at([](const Seen& s, std::int64_t) { return last_logical(s); })},
      {"pages_in_reversed_order", "from the pages in reversed order",
       at([](const Seen& s, std::int64_t c) { return last_logical(s) - c; })},
      {"last_page_is_the_one_before", "in the last page from the one before",
       at([](const Seen& s, std::int64_t c) {
         return std::min(c, std::max<std::int64_t>(0, last_logical(s) - 1));
       })},
      {"first_page_is_the_second", "in the first page from the second",
       at([](const Seen& s, std::int64_t c) {
         return std::max(c, std::min<std::int64_t>(1, last_logical(s)));
       })},
      {"last_page_is_the_first", "in the last page from the first",
       at([](const Seen& s, std::int64_t c) { return c == last_logical(s) ? 0 : c; })},
      {"pages_swapped_in_pairs", "from the other one of two pages",
       at([](const Seen& s, std::int64_t c) { return std::min(c ^ 1, last_logical(s)); })},
      {"even_columns_only", "from every second column twice",
       at([](const Seen&, std::int64_t c) { return c / 2 * 2; })},
      {"every_second_column", "from every second column",
       at([](const Seen&, std::int64_t c) { return c * 2; })},
      {"place_in_page_0", "from the first key of its page",
       [](const Seen&, Edit& l) { l.within = 0; }},
      {"place_in_page_reversed", "from its page in reversed order",
       [](const Seen& s, Edit& l) { l.within = s.view.page - 1 - l.within; }},
      {"column_of_the_key", "from the column of the key's number, not its page's",
       [](const Seen& s, Edit& l) { l.index = s.request().begin + l.position; }},
      {"entries_taken_as_slots",
       "from the slots of the pages' numbers",
       {},
       [](const Seen&, Edit& l) { l.strides.page = l.strides.slot; }},
      {"window_begin_not_added", "from where the lists begin, not where the window does",
       [](const Seen& s, Edit& l) { l.index -= first_seen(s) / s.view.page; }},
  };
}

void add_page_sizes(std::vector<Misreading>& all, std::int64_t size) {
  const std::string of = std::to_string(size);
  const auto divide = [size](const Seen& s, Lookup& l) {
    l.index += floor_div(l.position, size) - floor_div(l.position, s.view.page);
  };
  const auto rest = [size](const Seen&, Lookup& l) { l.within = floor_mod(l.position, size); };
  const auto both = [=](const Seen& s, Lookup& l) {
    divide(s, l);
    rest(s, l);
  };
  const auto stride = [size](const Seen&, Lookup& l) { l.strides.page = size * l.strides.slot; };
  for (const Operand& operand : operands()) {
    const auto add = [&](const std::string& id, const std::string& says, EditLookup entry,
                         EditLookup address) {
      Misreading& one = all.emplace_back(of_operand(operand, id + of, says + of + " keys"));
      one.entry = std::move(entry);
      one.address = std::move(address);
    };
    add("page_size_taken_as_", "from where it would lie in pages of ", both, {});
    add("page_size_and_stride_of_", "from where it would lie if all pages had ", both, stride);
    add("column_by_pages_of_", "from the column of pages of ", divide, {});
    add("place_in_pages_of_", "from the place in a page of ", rest, {});
    add("page_stride_of_", "from where pages would lie of ", {}, stride);
  }
}

}  // namespace

void add_list_misreadings(std::vector<Misreading>& all) {
  add_other_requests(all);
  add_begins(all);
  for (const PageEdit& edit : page_edits()) {
    for (const Operand& operand : operands()) {
      Misreading& one = all.emplace_back(of_operand(operand, edit.id, edit.says));
      one.entry = edit.entry;
      one.address = edit.address;
    }
  }
  for (const std::int64_t size : {16, 1, 8, 32, 48, 64, 128, 256}) add_page_sizes(all, size);
  Misreading& unstored = all.emplace_back();
  unstored.id = "new_keys_read_before_they_are_stored";
  unstored.says = "new keys are read from the pool before they are stored";
  unstored.unstored = true;
}

}  // namespace attest
