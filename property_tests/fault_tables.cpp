#include <algorithm>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

/// Slot (or page) table with one row per request, and the pool's size in its entries.
struct Table {
  IntArray* cells = nullptr;
  IntArray* rows = nullptr;  ///< row of each request; null = row i
  std::int64_t page_size = 1;
  std::int64_t limit = 0;

  std::size_t row(std::size_t request) const {
    return rows ? static_cast<std::size_t>(rows->values[request]) : request;
  }
  std::int64_t& cell(std::size_t request, std::int64_t column) const {
    return cells->values[row(request) * static_cast<std::size_t>(cells->meta.shape[1]) +
                         static_cast<std::size_t>(column)];
  }
};

Table table_of(Call& call) {
  if (auto* c = std::get_if<UnifiedCall>(&call)) {
    return {&c->block_table, nullptr, c->k.size(1), c->k.size(0)};
  }
  if (auto* c = std::get_if<VllmCpuCall>(&call)) {
    return {&c->block_table, nullptr, c->key_cache.size(2), c->key_cache.size(0)};
  }
  if (auto* c = std::get_if<ExtendCall>(&call)) {
    return {&c->req_to_token, &c->req_pool_indices, 1, c->k_buffer.size(0)};
  }
  if (auto* c = std::get_if<DecodeCall>(&call)) {
    return {&c->req_to_token, &c->req_pool_indices, 1, c->k_buffer.size(0)};
  }
  return {};
}

/// Whether the cells two requests read are the same, so that swapping them shows nothing.
bool rows_agree(const Problem& problem, const Table& table, std::size_t a, std::size_t b) {
  const std::int64_t tokens = std::min(problem.requests[a].kv_len(), problem.requests[b].kv_len());
  const std::int64_t cells = (tokens + table.page_size - 1) / table.page_size;
  for (std::int64_t c = 0; c < cells; ++c) {
    if (table.cell(a, c) != table.cell(b, c)) return false;
  }
  return true;
}

/// Keys of request i that this signature takes from the pool: extend hands over the new ones.
std::int64_t tokens_in_pool(const Problem& problem, const Call& call, std::size_t i) {
  const Request& request = problem.requests[i];
  return std::holds_alternative<ExtendCall>(call) ? request.committed : request.kv_len();
}

}  // namespace

bool block_table_row_of_previous_request(const Problem& problem, const SlotMap&, Call& call) {
  const Table table = table_of(call);
  if (table.cells == nullptr || problem.model.cross_attention) return false;
  bool changed = false;
  for (std::size_t i = problem.requests.size() - 1; i >= 1; --i) {
    const bool matters = problem.requests[i].live && tokens_in_pool(problem, call, i) > 0;
    changed = changed || (matters && !rows_agree(problem, table, i - 1, i));
    if (table.rows != nullptr) {
      table.rows->values[i] = table.rows->values[i - 1];
      continue;
    }
    for (std::int64_t c = 0; c < table.cells->size(1); ++c) table.cell(i, c) = table.cell(i - 1, c);
  }
  return changed;
}

/// Page ids of later steps are written past a row's columns: the next row's first entry is this
/// row's last page.
bool block_table_spills_into_next_row(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || problem.model.window) return false;
  const Table table = table_of(call);
  bool changed = false;
  for (std::size_t i = 1; i < problem.requests.size(); ++i) {
    const Request& before = problem.requests[i - 1];
    const std::int64_t spilled = table.cell(i - 1, (before.kv_len() - 1) / table.page_size);
    if (!problem.requests[i].live || table.cell(i, 0) == spilled) continue;
    table.cell(i, 0) = spilled;
    changed = true;
  }
  return changed;
}

bool block_table_stale_page(const Problem& problem, const SlotMap&, Call& call) {
  const Table table = table_of(call);
  if (table.cells == nullptr || table.limit < 2 || problem.model.cross_attention) return false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const std::int64_t tokens = tokens_in_pool(problem, call, i);
    if (!problem.requests[i].live || tokens == 0) continue;
    const std::int64_t last = problem.requests[i].encoder_tokens + tokens - 1;
    std::int64_t& cell = table.cell(i, last / table.page_size);
    cell = (cell + 1) % table.limit;
    return true;
  }
  return false;
}

bool block_table_without_draft_slack(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr) return false;
  const std::int64_t page = unified->k.size(1);
  std::int64_t committed = 1;
  for (const Request& r : problem.requests) committed = std::max(committed, r.committed);
  const std::int64_t width = (committed + page - 1) / page;
  const std::int64_t needed = (problem.max_kv_len() + page - 1) / page;
  if (width >= needed) return false;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t c = 0; c < width; ++c) {
      kept.push_back(unified->block_table.at(i, static_cast<std::size_t>(c)));
    }
  }
  const Dtype dtype = unified->block_table.meta.dtype;
  unified->block_table =
      int_matrix(dtype, static_cast<std::int64_t>(problem.requests.size()), width, std::move(kept));
  return true;
}

bool draft_slots_assumed_consecutive(const Problem& problem, const SlotMap&, Call& call) {
  const Table table = table_of(call);
  const bool speculates = problem.mode == Mode::target_verify || problem.mode == Mode::draft_decode;
  if (table.cells == nullptr || table.page_size != 1 || !speculates) return false;
  if (std::holds_alternative<ExtendCall>(call)) return false;  // reads no draft slot
  bool changed = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!r.live || r.committed == 0) continue;
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      std::int64_t& cell = table.cell(i, r.committed + t);
      const std::int64_t assumed = (table.cell(i, r.committed - 1) + 1 + t) % table.limit;
      changed = changed || cell != assumed;
      cell = assumed;
    }
  }
  return changed;
}

bool req_to_token_int32(const Problem& problem, const SlotMap& slots, Call& call) {
  auto* extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr || extend->req_to_token.meta.dtype == Dtype::int32) return false;
  const std::int64_t stride = std::max(extend->k_buffer.stride(0), extend->v_buffer.stride(0));
  bool wraps = false;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t t = 0; t < problem.requests[i].committed && problem.requests[i].live; ++t) {
      wraps = wraps || slots.slot(i, t) * stride >= std::int64_t{1} << 31;
    }
  }
  if (!wraps) return false;
  for (IntArray* array :
       {&extend->req_to_token, &extend->extend_seq_lens, &extend->extend_start_loc}) {
    array->meta.dtype = Dtype::int32;
    array->meta.storage_bytes /= 2;
  }
  return true;
}

bool loc_off_by_one(const Problem& problem, const SlotMap&, Call& call) {
  auto* decode = std::get_if<DecodeCall>(&call);
  if (decode == nullptr || !decode->key || problem.model.cross_attention) return false;
  for (std::size_t i = 0; i < decode->loc.values.size(); ++i) {
    if (!problem.requests[i].live) continue;
    decode->loc.values[i] += decode->loc.values[i] > 0 ? -1 : 1;
    return true;
  }
  return false;
}

}  // namespace attest
