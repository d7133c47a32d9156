#include "contracts/signatures/req_to_token.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "contracts/signatures/pool_view.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

constexpr std::int64_t other_requests = 2;  ///< table rows of requests outside the batch
constexpr std::int64_t spare_cells = 4;     ///< SGLang's table is this much wider than the context
constexpr std::int64_t max_cells = std::int64_t{1} << 28;

std::int64_t longest_row(const Problem& p) {
  std::int64_t longest = 1;
  for (const Request& r : p.requests) longest = std::max(longest, r.encoder_tokens + r.kv_len());
  return longest;
}

std::int64_t rows_of_pool(const Problem& p) {
  return static_cast<std::int64_t>(p.requests.size()) + 1 + other_requests;
}

/// Cells of a row: the context, room for the drafts, SGLang's margin. A context much longer than
/// the batch needs is cut where the table would take more memory than the case is worth.
std::int64_t columns(const Problem& p, std::int64_t rows) {
  const std::int64_t margin = spare_cells + p.num_draft_tokens.value_or(0);
  const std::int64_t needed = longest_row(p) + margin;
  const std::int64_t wanted = std::max(needed, p.context_len + margin);
  constexpr std::int64_t comfortable = std::int64_t{1} << 22;
  return rows * wanted <= comfortable ? wanted : needed;
}

void write_row(const Request& r, const SlotMap& slots, std::size_t i, std::int64_t* row) {
  for (const std::int64_t slot : slots.encoder_slots[i]) *row++ = slot;
  // An evicted token stands as slot 0, the pool's dummy.
  for (std::int64_t t = 0; t < r.kv_len(); ++t)
    *row++ = std::max<std::int64_t>(0, slots.slot(i, t));
}

/// Row of request i: 1 + a permutation of 0 .. rows-2, so that no request's row is its index.
std::vector<std::int64_t> scattered_rows(const Problem& p, std::int64_t rows) {
  const std::int64_t count = rows - 1;
  std::int64_t step = std::max<std::int64_t>(2, count / 2);
  while (std::gcd(step, count) != 1) ++step;
  std::vector<std::int64_t> ids;
  ids.reserve(p.requests.size());
  std::int64_t at = 0;
  for (const Request& r : p.requests) {
    ids.push_back(r.live ? 1 + (at++ * step + 1) % count : 0);
  }
  return ids;
}

/// Slots that exist and mean something to nobody in this batch.
void fill_foreign_rows(const Problem& p, const std::vector<std::int64_t>& ids, std::int64_t columns,
                       std::vector<std::int64_t>& values) {
  const std::int64_t slots = p.pool.num_pages * p.pool.page_size;
  for (std::int64_t row = 1; row < rows_of_pool(p); ++row) {
    if (std::find(ids.begin(), ids.end(), row) != ids.end()) continue;
    for (std::int64_t j = 0; j < columns; ++j) {
      values[static_cast<std::size_t>(row * columns + j)] = slots - 1 - (row * columns + j) % slots;
    }
  }
}

TensorMeta as_slots(TensorMeta pages, std::string label) {
  // One token a page: what lies between tokens is the page stride's to say.
  const std::int64_t slot_stride = pages.shape[1] == 1 ? pages.strides[0] : pages.strides[1];
  pages.shape = {pages.shape[0] * pages.shape[1], pages.shape[2], pages.shape[3]};
  pages.strides = {slot_stride, pages.strides[2], 1};
  if (pages.storage.empty()) pages.storage = std::move(label);
  return pages;
}

KvStrides k_strides(const Problem& p) {
  return dense_where_zero(p.pool.k, p.pool.page_size, p.model.num_kv_heads, p.model.head_dim);
}

}  // namespace

Dtype table_dtype(const Problem& problem) {
  const std::int64_t last_slot = problem.pool.num_pages * problem.pool.page_size - 1;
  const std::int64_t stride =
      std::max(k_buffer_of(problem).stride(0), v_buffer_of(problem).stride(0));
  return last_slot * stride >= std::int64_t{1} << 31 ? Dtype::int64 : Dtype::int32;
}

TokenTable pooled_table(const Problem& problem, const SlotMap& slots) {
  const std::int64_t rows = rows_of_pool(problem);
  const std::int64_t width = columns(problem, rows);
  std::vector<std::int64_t> ids = scattered_rows(problem, rows);
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows * width), 0);
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    if (!problem.requests[i].live) continue;
    write_row(problem.requests[i], slots, i, &values[static_cast<std::size_t>(ids[i] * width)]);
  }
  fill_foreign_rows(problem, ids, width, values);
  return {int_matrix(table_dtype(problem), rows, width, std::move(values)),
          int_array(Dtype::int64, std::move(ids))};
}

TokenTable expanded_table(const Problem& problem, const SlotMap& slots) {
  const auto rows = static_cast<std::int64_t>(problem.requests.size());
  const std::int64_t width = columns(problem, rows);
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows * width), undefined_slot);
  std::vector<std::int64_t> ids(problem.requests.size());
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    std::int64_t* const row = &values[i * static_cast<std::size_t>(width)];
    if (r.live) {
      write_row(r, slots, i, row);
    } else {
      std::fill_n(row, r.encoder_tokens + r.kv_len(), 0);
    }
  }
  return {int_matrix(table_dtype(problem), rows, width, std::move(values)),
          int_array(Dtype::int64, std::move(ids))};
}

std::optional<IntArray> encoder_lens_of(const Problem& problem) {
  std::vector<std::int64_t> lens;
  bool any = problem.model.cross_attention;
  for (const Request& r : problem.requests) {
    lens.push_back(r.encoder_tokens);
    any |= r.encoder_tokens > 0;
  }
  if (!any) return std::nullopt;
  return int_array(Dtype::int64, std::move(lens));
}

TensorMeta k_buffer_of(const Problem& problem) {
  return as_slots(paged_view(problem, problem.pool.k, problem.model.head_dim), "k_pool");
}

TensorMeta v_buffer_of(const Problem& problem) {
  if (!problem.model.mla) {
    return as_slots(paged_view(problem, problem.pool.v, problem.model.v_head_dim), "v_pool");
  }
  TensorMeta view =
      as_slots(paged_view(problem, k_strides(problem), problem.model.v_head_dim), "k_pool");
  view.storage_bytes = k_buffer_of(problem).storage_bytes;
  return view;
}

std::optional<std::string> cpu_unsupported(const Problem& problem, const SlotMap& slots) {
  const Model& m = problem.model;
  if (m.q_dtype != Dtype::bf16 && m.q_dtype != Dtype::f16) {
    return "the CPU kernels take bf16 or f16, not " + std::string(name(m.q_dtype));
  }
  if (m.kv_dtype != m.q_dtype || m.out_dtype != m.q_dtype) {
    return "the CPU kernels take one dtype for q, pool and output";
  }
  if (m.q_descale || m.k_descale || m.v_descale) return "the CPU kernels have no descale argument";
  if (!flat(problem, problem.pool.k, m.head_dim) ||
      (!m.mla && !flat(problem, problem.pool.v, m.v_head_dim))) {
    return "the CPU kernels address slots by one stride, the pool has a gap between its pages";
  }
  const std::int64_t rows = rows_of_pool(problem);
  if (rows * (longest_row(problem) + spare_cells) > max_cells) {
    return "req_to_token would have more than 2^28 cells";
  }
  return m.cross_attention ? std::nullopt : refuses_evicted_keys(problem, slots);
}

}  // namespace attest
