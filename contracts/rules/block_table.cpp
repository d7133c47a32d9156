#include "contracts/rules/block_table.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/new_slots.hpp"
#include "contracts/rules/page_table.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

constexpr std::int64_t widest_tile = 64;  // keys
constexpr std::int64_t described = 3;     // places put into words; the rest are counted

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// One request's row of the table, clipped to columns that exist.
struct TableRow {
  std::span<const std::int64_t> cells;
  std::int64_t first = 0;  ///< column of the first key that a new token sees
  std::int64_t end = 0;    ///< one past the column of the last key, at most the row's width
};

TableRow row_of(const PageTable& call, const Problem& problem, std::size_t i) {
  const std::int64_t page_size = call.page_size;
  const std::int64_t width = call.cells.size(1);
  const Request& r = problem.requests[i];
  const auto columns = static_cast<std::size_t>(width);
  TableRow row{std::span(call.cells.values).subspan(i * columns, columns)};
  // Both bounds come from the truth: what the call says about lengths is another rule's business.
  row.end = r.new_tokens > 0 ? std::min(width, ceil_div(r.kv_len(), page_size)) : 0;
  row.first = std::min(row.end, first_visible(problem.model, r) / page_size);
  return row;
}

/// True when every id lies in [0, pages). One branch-free pass: tables are large and right.
bool all_inside(std::span<const std::int64_t> ids, std::int64_t pages) {
  std::int64_t outside = 0;
  for (const std::int64_t id : ids) outside |= id | (pages - 1 - id);
  return outside >= 0;
}

void is_wide_enough(const PageTable& call, const Truth& truth, Report& report) {
  const std::int64_t width = call.cells.size(1);
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (r.new_tokens == 0) continue;
    std::int64_t keys = length_counts(r, truth.problem) ? r.kv_len() : 0;
    if (call.lengths.recorded) keys = std::max(keys, call.lengths[i]);
    const std::int64_t needed = ceil_div(keys, call.page_size);
    if (needed <= width) continue;
    report.add("block_table.shape[1]", std::to_string(width),
               std::to_string(needed) + " for the " + std::to_string(keys) + " keys of request " +
                   std::to_string(i) + " in pages of " + std::to_string(call.page_size));
  }
}

void has_room_for_the_drafts(const PageTable& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  const bool drafts = p.mode == Mode::target_verify || p.mode == Mode::draft_extend_v2 ||
                      p.mode == Mode::draft_decode;
  const std::int64_t width = call.cells.size(1);
  const std::int64_t page_size = call.page_size;
  // A table narrower than a context was made for this step; the next step makes another.
  if (!drafts || p.context_len == 0 || width < p.context_len / page_size) return;
  const std::int64_t slack = p.num_draft_tokens.value_or(p.max_new_tokens());
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    // Nothing is drafted behind a context's last token.
    const std::int64_t keys = std::min(r.kv_len(), p.context_len);
    const std::int64_t needed = ceil_div(keys + slack, page_size);
    if (!r.live || r.new_tokens == 0 || needed <= width) continue;
    report.add("block_table.shape[1]", std::to_string(width),
               std::to_string(needed) + " for the " + std::to_string(keys) + " keys of request " +
                   std::to_string(i) + " and the next step's " + std::to_string(slack) + " drafts");
  }
}

void ends_on_a_tile(const PageTable& call, const Truth& truth, Report& report) {
  const std::int64_t page_size = call.page_size;
  const std::int64_t width = call.cells.size(1);
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    const std::int64_t loaded = ceil_div(r.kv_len(), widest_tile) * widest_tile;
    const std::int64_t columns = ceil_div(loaded, page_size);
    if (!r.live || r.new_tokens == 0 || columns <= width) continue;
    report.add("block_table.shape[1]", std::to_string(width),
               std::to_string(columns) + ", up to the end of the tile of " +
                   std::to_string(widest_tile) + " with the last key of request " +
                   std::to_string(i));
  }
}

void names_existing_pages(const PageTable& call, const Truth& truth, Report& report) {
  if (!recorded(call.cells, "block_table", report)) return;
  const std::int64_t pages = call.pages;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const TableRow row = row_of(call, truth.problem, i);
    const auto used = row.cells.subspan(static_cast<std::size_t>(row.first),
                                        static_cast<std::size_t>(row.end - row.first));
    if (all_inside(used, pages)) continue;
    for (std::size_t c = 0; c < used.size(); ++c) {
      if (used[c] >= 0 && used[c] < pages) continue;
      report.add(entry("block_table", i, static_cast<std::size_t>(row.first) + c),
                 std::to_string(used[c]), "a page in [0, " + std::to_string(pages) + ")");
    }
  }
}

void unread_cells_name_existing_pages(const PageTable& call, const Truth& truth, Report& report) {
  if (!recorded(call.cells, "block_table", report)) return;
  const std::int64_t pages = call.pages;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const TableRow row = row_of(call, truth.problem, i);
    if (all_inside(row.cells, pages)) continue;
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const auto column = static_cast<std::int64_t>(c);
      const bool used = column >= row.first && column < row.end;
      if (used || (row.cells[c] >= 0 && row.cells[c] < pages)) continue;
      report.add(entry("block_table", i, c), std::to_string(row.cells[c]),
                 "a page in [0, " + std::to_string(pages) + "), whoever it belongs to");
    }
  }
}

/// First token of column c whose key is not where the table says, or -1. Tokens that no page of
/// this size can hold are keeps_pages_together's.
std::int64_t misplaced_token(const Truth& truth, std::size_t i, std::int64_t c, std::int64_t page,
                             std::int64_t page_size) {
  const Request& r = truth.problem.requests[i];
  const std::int64_t end = std::min(r.kv_len(), (c + 1) * page_size);
  for (std::int64_t t = std::max(c * page_size, first_visible(truth.problem.model, r)); t < end;
       ++t) {
    const std::int64_t slot = truth.slots.slot(i, t);
    if (slot < 0 || slot % page_size != t % page_size) continue;
    if (slot / page_size != page) return t;
  }
  return -1;
}

void report_page(const PageTable& call, const Truth& truth, std::size_t i, std::int64_t c,
                 std::int64_t token, Report& report) {
  const std::int64_t page = truth.slots.slot(i, token) / call.page_size;
  report.add(entry("block_table", i, static_cast<std::size_t>(c)),
             std::to_string(call.cells.at(i, static_cast<std::size_t>(c))),
             std::to_string(page) + ", the page of token " + std::to_string(token) +
                 " of request " + std::to_string(i));
}

void names_the_requests_pages(const PageTable& call, const Truth& truth, Report& report) {
  if (!recorded(call.cells, "block_table", report)) return;
  const std::int64_t page_size = call.page_size;
  std::int64_t found = 0;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    if (!truth.problem.requests[i].live) continue;
    const TableRow row = row_of(call, truth.problem, i);
    if (truth.slots.page_size == page_size) {
      const auto first = row.cells.begin() + row.first;
      const auto last = row.cells.begin() + row.end;
      if (std::equal(first, last, truth.slots.pages[i].begin() + row.first)) continue;
    }
    for (std::int64_t c = row.first; c < row.end; ++c) {
      const std::int64_t page = row.cells[static_cast<std::size_t>(c)];
      const std::int64_t token = misplaced_token(truth, i, c, page, page_size);
      if (token >= 0 && ++found <= described) report_page(call, truth, i, c, token, report);
    }
  }
  if (found > described) report.add_more(found - described);
}

void keeps_pages_together(const PageTable& call, const Truth& truth, Report& report) {
  const std::int64_t page_size = call.page_size;
  if (truth.slots.page_size % page_size == 0) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    std::int64_t previous = -1;
    for (std::int64_t t = first_visible(truth.problem.model, r); r.live && t < r.kv_len(); ++t) {
      const std::int64_t slot = truth.slots.slot(i, t);
      const bool starts_page = t % page_size == 0 || previous < 0;
      const bool fits = slot % page_size == t % page_size &&
                        (starts_page || slot / page_size == previous / page_size);
      previous = slot;
      if (slot < 0 || fits) continue;
      report.add(entry("block_table", i, static_cast<std::size_t>(t / page_size)), "one page",
                 "none: token " + std::to_string(t) + " is in slot " + std::to_string(slot) +
                     ", not at offset " + std::to_string(t % page_size) +
                     " of the page of its neighbours");
    }
  }
}

void gives_each_request_its_own_new_slots(const PageTable& call, const Truth& truth,
                                          Report& report) {
  if (!recorded(call.cells, "block_table", report)) return;
  const std::int64_t page_size = call.page_size;
  NewSlots slots("block_table");
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    const TableRow row = row_of(call, truth.problem, i);
    for (std::int64_t t = r.committed; r.live && t < r.kv_len();) {
      const std::int64_t c = t / page_size;
      const std::int64_t count = std::min(page_size - t % page_size, r.kv_len() - t);
      if (c >= row.end) break;
      slots.add(i, t, row.cells[static_cast<std::size_t>(c)], t % page_size, count);
      t += count;
    }
  }
  slots.report_shared(report);
}

constexpr Rule rules[] = {
    {.id = "block_table.is_wide_enough",
     .says = "block_table has a column for every page of every request's keys",
     .why = "a column past the row's end is the next request's first page",
     .source = "sgl-project/sglang#35985",
     .severity = Severity::fault,
     .unified = on_table<is_wide_enough, UnifiedCall>,
     .vllm_cpu = on_table<is_wide_enough, VllmCpuCall>},
    {.id = "block_table.has_room_for_the_drafts",
     .says = "a table made for a whole context has columns for every request's next drafts",
     .why = "a request at the context limit makes the index builder write its last page into the "
            "next request's row",
     .source = "sgl-project/sglang#35985; sgl-project/sglang#27360",
     .severity = Severity::policy,
     .unified = on_table<has_room_for_the_drafts, UnifiedCall>},
    {.id = "block_table.ends_on_a_tile",
     .says = "block_table has columns up to the end of the last 64-key tile",
     .why = "cells are loaded a tile at a time without a bounds check; past the last row they "
            "are somebody else's memory",
     .source = "ROCm/composable_kernel#1649",
     .severity = Severity::policy,
     .unified = on_table<ends_on_a_tile, UnifiedCall>},
    {.id = "block_table.names_existing_pages",
     .says = "every cell that a new token reads is in [0, num_pages) of this layer's pool",
     .why = "kernels read K and V through it without a bounds check",
     .source = "sgl-project/sglang#38187",
     .severity = Severity::fault,
     .unified = on_table<names_existing_pages, UnifiedCall>,
     .vllm_cpu = on_table<names_existing_pages, VllmCpuCall>},
    {.id = "block_table.unread_cells_name_existing_pages",
     .says = "cells outside the visible keys hold a valid page id too",
     .why = "a tile loads them all the same, and what it loads must be mapped and finite",
     .source = "sgl-project/sglang#32477; vllm-project/vllm#30887",
     .severity = Severity::policy,
     .unified = on_table<unread_cells_name_existing_pages, UnifiedCall>},
    {.id = "block_table.names_the_requests_pages",
     .says = "block_table[i][t / page_size] is the page of token t of request i, for every token "
             "some new token sees",
     .why = "a stale, zero or foreign cell silently attends to other keys; cells older than the "
            "window are free",
     .source = "sgl-project/sglang#40410",
     .unified = on_table<names_the_requests_pages, UnifiedCall>,
     .vllm_cpu = on_table<names_the_requests_pages, VllmCpuCall>},
    {.id = "block_table.keeps_pages_together",
     .says = "the tokens of a page lie in one physical page, each at its own offset",
     .why = "a table names whole pages: slots that were handed out singly cannot be said with it",
     .source = "huggingface/text-generation-inference#2711",
     .unified = on_table<keeps_pages_together, UnifiedCall>,
     .vllm_cpu = on_table<keeps_pages_together, VllmCpuCall>},
    {.id = "block_table.gives_each_request_its_own_new_slots",
     .says = "no two live requests have a new token in the same slot",
     .why = "both store there before attention runs, and one of them reads the other's key",
     .source = "sgl-project/sglang#25529",
     .unified = on_table<gives_each_request_its_own_new_slots, UnifiedCall>,
     .vllm_cpu = on_table<gives_each_request_its_own_new_slots, VllmCpuCall>},
};

}  // namespace

std::span<const Rule> block_table_rules() { return rules; }

}  // namespace attest
