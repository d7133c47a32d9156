#include <algorithm>
#include <set>

#include "property_tests/fault_edits.hpp"
#include "property_tests/flat_lists.hpp"

namespace attest {
namespace {

/// The page that no request has, or -1.
std::int64_t nobodys_page(const Problem& problem, const SlotMap& slots) {
  std::set<std::int64_t> used;
  for (const auto& pages : slots.pages) used.insert(pages.begin(), pages.end());
  for (const auto& of_encoder : slots.encoder_slots) {
    for (const std::int64_t slot : of_encoder) used.insert(slot / slots.page_size);
  }
  const std::int64_t pages =
      problem.pool.num_pages * problem.pool.page_size / std::max<std::int64_t>(1, slots.page_size);
  std::int64_t page = 1;  // page 0 may be the padding's
  while (page < pages && used.contains(page)) ++page;
  return page < pages ? page : -1;
}

IntArray* block_table_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) return &c->block_table;
  if (auto* c = std::get_if<VllmCpuCall>(&call)) return &c->block_table;
  return nullptr;
}

}  // namespace

bool block_table_holds_token_slots(const Problem& problem, const SlotMap& slots, Call& call) {
  IntArray* const table = block_table_of(call);
  if (table == nullptr || slots.page_size == 1) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t last = (problem.requests[i].kv_len() - 1) / slots.page_size;
    changed = changed || (problem.requests[i].live && problem.requests[i].kv_len() > 0 &&
                          table->at(i, static_cast<std::size_t>(last)) > 0);
  }
  for (std::int64_t& cell : table->values) cell *= slots.page_size;
  return changed;
}

/// Only requests whose first page is wholly committed, and that see it.
bool table_names_a_freed_page(const Problem& problem, const SlotMap& slots, Call& call) {
  IntArray* const table = block_table_of(call);
  const std::int64_t freed = nobodys_page(problem, slots);
  if (table == nullptr || freed < 0 || problem.model.window) return false;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!r.live || r.committed < slots.page_size) continue;
    table->values[i * static_cast<std::size_t>(table->size(1))] = freed;
    changed = true;
  }
  return changed;
}

bool pool_rows_of_batch_positions(const Problem& problem, const SlotMap&, Call& call) {
  IntArray* rows = nullptr;
  std::int64_t count = 0;
  const bool stores = std::holds_alternative<DecodeCall>(call);
  if (auto* c = std::get_if<ExtendCall>(&call)) {
    rows = &c->req_pool_indices;
    count = c->req_to_token.size(0);
  }
  if (auto* c = std::get_if<DecodeCall>(&call)) {
    rows = &c->req_pool_indices;
    count = c->req_to_token.size(0);
  }
  if (rows == nullptr || count < static_cast<std::int64_t>(rows->values.size())) return false;
  bool changed = false;
  for (std::size_t i = 0; i < rows->values.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    const Request& r = problem.requests[i];
    const bool reads = r.live && (stores || r.committed > 0 || problem.model.cross_attention);
    changed = changed || (reads && rows->values[i] != position);
    rows->values[i] = position;
  }
  return changed;
}

bool kv_indices_tail_not_filled(const Problem& problem, const SlotMap&, Call& call) {
  const FlatLists lists = flat_lists_of(call);
  if (lists.entries == nullptr) return false;
  constexpr std::int64_t block = 64;
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t c = lists.count(i) / block * block; c < lists.count(i); ++c) {
      changed = changed || (problem.requests[i].live && lists.entry(i, c) != 0);
      lists.entry(i, c) = 0;
    }
  }
  return changed;
}

bool surplus_page_at_a_boundary(const Problem& problem, const SlotMap&, Call& call) {
  const FlatLists lists = flat_lists_of(call);
  if (lists.last_lens == nullptr || lists.pool < 1) return false;
  std::vector<std::int64_t> entries, offsets = {0};
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t count = lists.count(i);
    for (std::int64_t c = 0; c < count; ++c) entries.push_back(lists.entry(i, c));
    const Request& r = problem.requests[i];
    if (count > 0 && r.kv_len() % lists.page_size == 0) {
      entries.push_back((entries.back() + 1) % lists.pool);
      changed = changed || r.live;
    }
    offsets.push_back(static_cast<std::int64_t>(entries.size()));
  }
  *lists.offsets = int_array(lists.offsets->meta.dtype, std::move(offsets));
  *lists.entries = int_array(lists.entries->meta.dtype, std::move(entries));
  return changed;
}

bool kv_indptr_counts_pages(const Problem& problem, const SlotMap&, Call& call) {
  const FlatLists lists = flat_lists_of(call);
  const std::int64_t size = problem.pool.page_size;
  if (lists.offsets == nullptr || lists.page_size != 1 || size == 1) return false;
  std::vector<std::int64_t> offsets = {0};
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t pages = (lists.count(i) + size - 1) / size;
    changed = changed || (problem.requests[i].live && pages != lists.count(i));
    offsets.push_back(offsets.back() + pages);
  }
  lists.offsets->values = std::move(offsets);
  return changed;
}

bool new_keys_listed_in_the_pool(const Problem& problem, const SlotMap& slots, Call& call) {
  auto* const c = std::get_if<LegacyExtendCall>(&call);
  if (c == nullptr) return false;
  std::vector<std::int64_t> entries, offsets = {0};
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t t = 0; t < problem.requests[i].kv_len(); ++t) {
      entries.push_back(std::max<std::int64_t>(0, slots.slot(i, t)));
    }
    offsets.push_back(static_cast<std::int64_t>(entries.size()));
    changed = changed || (problem.requests[i].live && problem.requests[i].new_tokens > 0);
  }
  c->kv_indptr = int_array(c->kv_indptr.meta.dtype, std::move(offsets));
  c->kv_indices = int_array(c->kv_indices.meta.dtype, std::move(entries));
  return changed;
}

}  // namespace attest
