#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "property_tests/fault_edits.hpp"
#include "property_tests/flat_lists.hpp"

namespace attest {
namespace {

IntArray* block_table_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return &c->block_table;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return &c->block_table;
  return nullptr;
}

std::span<std::int64_t> row_of(IntArray& table, std::size_t row) {
  const auto width = static_cast<std::size_t>(table.size(1));
  return std::span(table.values).subspan(row * width, width);
}

std::int64_t pages_of(const Request& r, const SlotMap& slots) {
  return (r.kv_len() + slots.page_size - 1) / slots.page_size;
}

/// Entries of request i, one for each page of `size` tokens.
struct Entries {
  std::span<std::int64_t> pages;
  std::int64_t size = 1;
};
Entries entries_of(Call& call, const SlotMap& slots, std::size_t i) {
  if (IntArray* const table = block_table_of(call)) return {row_of(*table, i), slots.page_size};
  if (auto* c = std::get_if<DecodeCall>(&call)) {
    return {row_of(c->req_to_token, static_cast<std::size_t>(c->req_pool_indices[i]))};
  }
  const FlatLists lists = flat_lists_of(call);
  if (lists.entries == nullptr) return {};
  const auto first = static_cast<std::size_t>(lists.begin(i));
  return {std::span(lists.entries->values).subspan(first, static_cast<std::size_t>(lists.count(i))),
          lists.page_size};
}

/// One draft and the next, which does not hang from it, exchanged; the others as they are.
std::vector<std::size_t> neighbours_exchanged(const Request& r) {
  std::vector<std::size_t> order(static_cast<std::size_t>(r.new_tokens));
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t t = 1; t + 1 < order.size(); ++t) {
    const bool chain = r.tree_parent.empty();
    if (chain || r.tree_parent[t + 1] == static_cast<std::int64_t>(t)) continue;
    std::swap(order[t], order[t + 1]);
    ++t;
  }
  return order;
}

/// The rows of one request's mask, `stride` entries apart, whose columns begin at `rows`.
/// \returns whether an entry changed
bool exchange(const Request& r, std::int64_t* rows, std::int64_t stride) {
  const std::vector<std::size_t> order = neighbours_exchanged(r);
  const std::size_t count = order.size();
  std::vector<std::int64_t> before;
  for (std::size_t t = 0; t < count; ++t) {
    const std::int64_t* const row = rows + static_cast<std::int64_t>(t) * stride;
    before.insert(before.end(), row, row + count);
  }
  bool changed = false;
  for (std::size_t t = 0; t < count; ++t) {
    for (std::size_t u = 0; u < count; ++u) {
      std::int64_t& entry =
          rows[static_cast<std::int64_t>(t) * stride + static_cast<std::int64_t>(u)];
      entry = before[order[t] * count + order[u]];
      changed = changed || entry != before[t * count + u];
    }
  }
  return changed && r.live;
}

}  // namespace

bool table_without_the_evicted_pages(const Problem& problem, const SlotMap& slots, Call& call) {
  IntArray* const table = block_table_of(call);
  if (table == nullptr || !problem.model.window) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    const std::int64_t oldest = std::max<std::int64_t>(0, r.committed + 1 - *problem.model.window);
    const std::int64_t gone = oldest / slots.page_size;
    if (gone == 0) continue;
    const std::span<std::int64_t> row = row_of(*table, i);
    const std::vector<std::int64_t> before(row.begin(), row.end());
    std::shift_left(row.begin(), row.end(), gone);
    std::fill(row.end() - gone, row.end(), 0);
    // Cells before the window are read by nobody.
    for (std::int64_t c = gone; c < pages_of(r, slots); ++c) {
      const auto at = static_cast<std::size_t>(c);
      changed = changed || (r.live && before[at] != row[at]);
    }
  }
  return changed;
}

bool pages_of_the_prefix_last(const Problem& problem, const SlotMap& slots, Call& call) {
  IntArray* const table = block_table_of(call);
  if (table == nullptr) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    const std::int64_t pages = pages_of(r, slots);
    const std::int64_t cached = r.committed / slots.page_size;
    if (cached == 0 || cached >= pages || problem.model.window) continue;
    // Where all pages are full their order says nothing.
    if (r.kv_len() % slots.page_size == 0 && r.new_tokens == 1) continue;
    const std::span<std::int64_t> row = row_of(*table, i).first(static_cast<std::size_t>(pages));
    std::rotate(row.begin(), row.begin() + cached, row.end());
    changed = changed || r.live;
  }
  return changed;
}

bool branches_read_each_others_drafts(const Problem& problem, const SlotMap& slots, Call& call) {
  const bool serves = std::holds_alternative<UnifiedCall>(call) ||
                      std::holds_alternative<DecodeCall>(call) ||
                      std::holds_alternative<PagedRaggedCall>(call);
  if (!serves || problem.mode != Mode::draft_decode || problem.topk < 2) return false;
  bool changed = false;
  for (std::size_t i = problem.requests.size() - 1; i > 0; --i) {
    const Request& r = problem.requests[i];
    const Request& other = problem.requests[i - 1];
    const bool siblings = r.shared_prefix > 0 && r.shared_sequence == other.shared_sequence;
    if (!siblings || r.committed == r.shared_prefix) continue;
    const Entries own = entries_of(call, slots, i), others = entries_of(call, slots, i - 1);
    const std::int64_t end = (r.committed + own.size - 1) / own.size;
    for (std::int64_t c = r.shared_prefix / own.size; c < end; ++c) {
      const auto at = static_cast<std::size_t>(c);
      changed = changed || (r.live && own.pages[at] != others.pages[at]);
      own.pages[at] = others.pages[at];
    }
  }
  return changed;
}

bool lists_in_another_order(const Problem& problem, const SlotMap&, Call& call) {
  const FlatLists lists = flat_lists_of(call);
  const std::size_t batch = problem.requests.size();
  if (lists.entries == nullptr || batch < 2) return false;
  std::vector<std::int64_t> entries, offsets = {0}, last_lens;
  bool changed = false;
  for (std::size_t i = 0; i < batch; ++i) {
    const std::size_t other = (i + 1) % batch;
    bool same = lists.count(i) == lists.count(other);
    for (std::int64_t c = 0; c < lists.count(other); ++c) {
      same = same && lists.entry(i, c) == lists.entry(other, c);
      entries.push_back(lists.entry(other, c));
    }
    offsets.push_back(static_cast<std::int64_t>(entries.size()));
    if (lists.last_lens != nullptr) last_lens.push_back(lists.last_lens->values[other]);
    changed = changed || (problem.requests[i].live && !same);
  }
  // What lies behind the lists stays: a kernel may load it.
  std::copy(entries.begin(), entries.end(), lists.entries->values.begin());
  lists.offsets->values = std::move(offsets);
  if (lists.last_lens != nullptr) lists.last_lens->values = std::move(last_lens);
  return changed;
}

bool seq_lens_include_the_encoder(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* lengths = nullptr;
  if (auto* c = std::get_if<ExtendCall>(&call)) lengths = &c->seq_lens;
  if (auto* c = std::get_if<DecodeCall>(&call)) lengths = &c->seq_lens;
  if (lengths == nullptr || problem.model.cross_attention) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    lengths->values[i] += r.encoder_tokens;
    changed = changed || (r.live && r.encoder_tokens > 0);
  }
  return changed;
}

bool mask_before_the_reordering(const Problem& problem, const SlotMap&, Call& call) {
  bool changed = false;
  auto* const extend = std::get_if<ExtendCall>(&call);
  if (extend != nullptr && extend->tree_mask) {
    std::int64_t* rows = extend->tree_mask->values.data();
    for (const Request& r : problem.requests) {
      changed = exchange(r, rows, extend->max_len_extend) || changed;
      rows += extend->max_len_extend * extend->max_len_extend;
    }
  }
  auto* const legacy = std::get_if<LegacyExtendCall>(&call);
  if (legacy != nullptr && legacy->custom_mask) {
    std::int64_t* rows = legacy->custom_mask->values.data();
    for (const Request& r : problem.requests) {
      changed = exchange(r, rows + r.committed, r.kv_len()) || changed;
      rows += r.new_tokens * r.kv_len();
    }
  }
  return changed;
}

}  // namespace attest
