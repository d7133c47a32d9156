#include "contracts/rules/table_rows.hpp"

#include <algorithm>
#include <cstring>

#include "contracts/rules/finding_text.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

template <class CallType>
std::optional<TableCells> cells_of(const CallType& call, const Truth& truth, std::size_t i,
                                   std::int64_t first, std::int64_t last) {
  const Request& r = truth.problem.requests[i];
  const IntArray& table = call.req_to_token;
  const bool known = table.recorded && call.req_pool_indices.recorded;
  if (!known || !r.live || truth.problem.model.cross_attention) return std::nullopt;
  const std::int64_t row = call.req_pool_indices[i];
  if (row < 0 || row >= table.size(0)) return std::nullopt;
  const std::int64_t column = r.encoder_tokens + first;
  last = std::min(last, table.size(1) - r.encoder_tokens);
  if (first >= last) return std::nullopt;
  const std::int64_t* const cells =
      table.values.data() + static_cast<std::size_t>(row * table.size(1) + column);
  return TableCells{cells, first, last, row, column};
}

/// Whether `count` cells are base, base + 1, ... Four at a time without a branch: the loop that a
/// check of a large batch spends its time in.
bool counts_up(const std::int64_t* cells, std::int64_t base, std::int64_t count) {
  std::uint64_t wrong[4] = {};
  const auto differs = [&](std::int64_t n) {
    return static_cast<std::uint64_t>(cells[n]) ^ static_cast<std::uint64_t>(base + n);
  };
  std::int64_t n = 0;
  for (; n + 4 <= count; n += 4) {
    wrong[0] |= differs(n);
    wrong[1] |= differs(n + 1);
    wrong[2] |= differs(n + 2);
    wrong[3] |= differs(n + 3);
  }
  for (; n < count; ++n) wrong[0] |= differs(n);
  return (wrong[0] | wrong[1] | wrong[2] | wrong[3]) == 0;
}

/// Calls f(cells, token, count, page) for the part of each page that the row covers.
template <class F>
void each_page(const TableCells& row, const SlotMap& slots, std::size_t i, F f) {
  const std::int64_t size = slots.page_size;
  for (std::int64_t token = row.first; token < row.last;) {
    const std::int64_t count = std::min(size - token % size, row.last - token);
    f(row.cells + (token - row.first), token, count,
      slots.pages[i][static_cast<std::size_t>(token / size)]);
    token += count;
  }
}

void note(Mismatch& mismatch, std::int64_t token) {
  if (mismatch.count++ == 0) mismatch.token = token;
}

}  // namespace

std::string cell_name(const TableCells& row, std::int64_t token) {
  return entry("req_to_token", row.pool_row, row.column + token - row.first);
}

std::optional<TableCells> visible_cells(const ExtendCall& call, const Truth& truth, std::size_t i) {
  const Request& r = truth.problem.requests[i];
  if (r.new_tokens == 0) return std::nullopt;
  return cells_of(call, truth, i, first_visible(truth.problem.model, r), r.committed);
}

std::optional<TableCells> visible_cells(const DecodeCall& call, const Truth& truth, std::size_t i) {
  const Request& r = truth.problem.requests[i];
  return cells_of(call, truth, i, first_visible(truth.problem.model, r), r.kv_len());
}

std::optional<TableCells> new_cells(const ExtendCall& call, const Truth& truth, std::size_t i) {
  const Request& r = truth.problem.requests[i];
  return cells_of(call, truth, i, r.committed, r.kv_len());
}

Mismatch compare_cells(const TableCells& row, const SlotMap& slots, std::size_t i) {
  Mismatch mismatch;
  // One slot a page: the row should be the map's own bytes.
  const std::int64_t* const pages = slots.pages[i].data() + row.first;
  const auto bytes = static_cast<std::size_t>(row.last - row.first) * sizeof(std::int64_t);
  if (slots.page_size == 1 && std::memcmp(row.cells, pages, bytes) == 0) return mismatch;
  each_page(
      row, slots, i,
      [&](const std::int64_t* cells, std::int64_t token, std::int64_t count, std::int64_t page) {
        const std::int64_t base = page * slots.page_size + token % slots.page_size;
        if (page < 0 || counts_up(cells, base, count)) return;
        for (std::int64_t n = 0; n < count; ++n) {
          if (cells[n] != base + n) note(mismatch, token + n);
        }
      });
  return mismatch;
}

Mismatch outside_pool(const TableCells& row, std::int64_t num_slots, const SlotMap& slots,
                      std::size_t i) {
  Mismatch mismatch;
  // The top bit is set by a cell below 0 and by one past the last slot: no branch in the loop.
  const auto last_slot = static_cast<std::uint64_t>(num_slots - 1);
  std::uint64_t outside = 0;
  for (std::int64_t n = 0; n < row.last - row.first; ++n) {
    const auto slot = static_cast<std::uint64_t>(row.cells[n]);
    outside |= slot | (last_slot - slot);
  }
  if (outside >> 63 == 0) return mismatch;
  for (std::int64_t token = row.first; token < row.last; ++token) {
    const std::int64_t slot = row.cells[token - row.first];
    if ((slot < 0 || slot >= num_slots) && slots.slot(i, token) >= 0) note(mismatch, token);
  }
  return mismatch;
}

}  // namespace attest
