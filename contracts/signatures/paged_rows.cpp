#include "contracts/signatures/paged_rows.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace attest {
namespace {

/// The rows and key positions one batch row of the call is about.
struct Span {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t position = 0;  ///< of the first row
};

std::optional<Span> span_of(const PagedRows& call, std::size_t i) {
  const std::int64_t length = saturated(call.lengths.values[i]);
  if (call.row_is_request) return Span{static_cast<std::int64_t>(i), 1, length - 1};
  if (i + 1 >= call.offsets.values.size()) return std::nullopt;
  const std::int64_t first = saturated(call.offsets.values[i]);
  const std::int64_t rows = saturated(call.offsets.values[i + 1]) - first;
  return Span{first, rows, length - rows};
}

/// Reads tokens up to `last` of batch row i through the block table, as the kernel's index
/// arithmetic does: a column past the row's end lands in the next row.
void read_pages(const PagedRows& call, std::size_t i, std::int64_t last, RowKeys& keys) {
  const IntArray& table = call.table;
  const std::int64_t page_size = call.page_size;
  const std::int64_t width = table.size(1);
  const bool rows_touch = table.meta.stride(0) == width;
  std::int64_t row_start = 0;
  const bool usable = table.recorded && page_size >= 1 && width >= 1 &&
                      page_size <= largest_count && width <= largest_count &&
                      !__builtin_mul_overflow(static_cast<std::int64_t>(i), width, &row_start);
  const auto cells = static_cast<std::int64_t>(table.values.size());
  while (usable && keys.next_token() < last) {
    const std::int64_t column = keys.next_token() / page_size;
    // A length that is nonsense is not followed through the whole table.
    const std::int64_t columns = rows_touch ? 2 * width : width;
    if (column >= columns || column >= cells - row_start) break;
    const std::int64_t page = table.values[static_cast<std::size_t>(row_start + column)];
    keys.read_page(page, call.num_pages, page_size, last);
  }
  keys.read_outside(last - keys.next_token());
}

void read_request(const PagedRows& call, std::size_t i, SlotContents& contents, QueryRows& rows) {
  const std::optional<Span> span = span_of(call, i);
  if (!span) return;
  const std::int64_t first = std::max<std::int64_t>(0, span->first_row);
  const std::int64_t last = std::min(rows.count(), span->first_row + span->rows);
  if (first >= last) return;
  const std::int64_t window = call.window > 0 ? saturated(call.window) : 4 * largest_count;
  const std::int64_t length = span->position + span->rows;
  const auto position = [&](std::int64_t r) { return span->position + (r - span->first_row); };
  const auto first_key = [&](std::int64_t r) {
    return std::max<std::int64_t>(0, position(r) - window + 1);
  };
  const auto end_key = [&](std::int64_t r) {
    return call.causal ? position(r) + 1 : std::min(length, position(r) + window);
  };
  const std::int64_t end = end_key(last - 1);
  RowKeys keys(contents, i, first_key(first));
  if (call.usable) read_pages(call, i, end, keys);
  keys.read_outside(end - keys.next_token());
  for (std::int64_t r = first; r < last; ++r) {
    rows.cover(r, keys.clipped(first_key(r), end_key(r)));
  }
}

}  // namespace

void PagedRows::read(SlotContents& contents, QueryRows& rows) const {
  if (!lengths.recorded || !offsets.recorded) return;
  for (std::size_t i = 0; i < lengths.values.size() && !rows.exhausted(); ++i) {
    read_request(*this, i, contents, rows);
  }
}

IntArray new_token_offsets(const Problem& problem) {
  std::vector<std::int64_t> offsets{0};
  for (const Request& r : problem.requests) offsets.push_back(offsets.back() + r.new_tokens);
  return int_array(Dtype::int32, std::move(offsets));
}

IntArray total_lengths(const Problem& problem, Dtype dtype) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(problem.requests.size());
  for (const Request& r : problem.requests) lengths.push_back(r.kv_len());
  return int_array(dtype, std::move(lengths));
}

IntArray page_ids(const Problem& problem, const SlotMap& slots, std::int64_t tokens) {
  const std::int64_t page_size = problem.pool.page_size;
  const std::int64_t width = (tokens + page_size - 1) / page_size;
  std::vector<std::int64_t> cells;
  cells.reserve(problem.requests.size() * static_cast<std::size_t>(width));
  for (const std::vector<std::int64_t>& pages : slots.pages) {
    const auto last =
        std::find_if(pages.rbegin(), pages.rend(), [](std::int64_t page) { return page >= 0; });
    const std::int64_t valid = last == pages.rend() ? 0 : *last;
    for (const std::int64_t page : pages) cells.push_back(page < 0 ? valid : page);
    cells.resize(cells.size() + static_cast<std::size_t>(width) - pages.size(), valid);
  }
  return int_matrix(Dtype::int32, static_cast<std::int64_t>(problem.requests.size()), width,
                    std::move(cells));
}

}  // namespace attest
