#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "contracts/call.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// Cells of one request's row of req_to_token: those of text tokens [first, last).
struct TableCells {
  const std::int64_t* cells = nullptr;  ///< cells[0] is token `first`
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t pool_row = 0;
  std::int64_t column = 0;  ///< of cells[0]
};

/// "req_to_token[4][131]": the cell of a token.
std::string cell_name(const TableCells& row, std::int64_t token);

/// Cells of the keys that some new token of live request i sees in the pool: the committed ones
/// for extend (new keys come from k_extend), this step's own too for decode. Cut at the table's
/// edge. Nothing for padded rows, cross attention, rows outside the table and unrecorded arrays.
std::optional<TableCells> visible_cells(const ExtendCall& call, const Truth& truth, std::size_t i);
std::optional<TableCells> visible_cells(const DecodeCall& call, const Truth& truth, std::size_t i);

/// Cells of the new tokens of live request i.
std::optional<TableCells> new_cells(const ExtendCall& call, const Truth& truth, std::size_t i);

/// Cells of a request that differ from its slots: how many, and the first one's token.
struct Mismatch {
  std::int64_t count = 0;
  std::int64_t token = 0;
};
/// Compares page by page in whole runs; evicted tokens are free. The hot loop of every check.
Mismatch compare_cells(const TableCells& row, const SlotMap& slots, std::size_t i);

/// Cells outside [0, slots): how many, and the first one's token. Evicted tokens are free.
Mismatch outside_pool(const TableCells& row, std::int64_t num_slots, const SlotMap& slots,
                      std::size_t i);

}  // namespace attest
