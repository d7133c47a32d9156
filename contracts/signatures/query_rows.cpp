#include "contracts/signatures/query_rows.hpp"

#include <algorithm>
#include <utility>

#include "contracts/signatures/slot_contents.hpp"

namespace attest {
namespace {

constexpr std::int64_t max_padding_rows = 65536;
// A scrambled table gives every row as many runs as the request has pages. Past this many the rows
// say only how much they read: the comparison has long failed.
constexpr std::int64_t max_runs = 1 << 22;

}  // namespace

std::int64_t saturated(std::int64_t value) {
  return std::clamp(value, -largest_count, largest_count);
}

QueryRows::QueryRows(const TensorMeta& q, const Problem& problem) {
  const std::int64_t limit = std::max(problem.total_new_tokens(), max_padding_rows);
  const std::int64_t count = std::clamp<std::int64_t>(q.size(0), 0, limit);
  rows_.resize(static_cast<std::size_t>(count),
               AttendedRow{.keys = {}, .expect = RowExpectation::untouched});
  std::size_t r = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    for (std::int64_t t = 0; t < problem.requests[i].new_tokens && r < rows_.size(); ++t, ++r) {
      rows_[r].request = static_cast<std::int64_t>(i);
      rows_[r].token = t;
    }
  }
}

void QueryRows::cover(std::int64_t r, std::vector<KeyRun> keys) {
  AttendedRow& row = rows_[static_cast<std::size_t>(r)];
  ++covered_;
  runs_ += static_cast<std::int64_t>(keys.size());
  if (runs_ > max_runs && keys.size() > 1) {
    std::int64_t count = 0;
    for (const KeyRun& run : keys) count += run.count;
    keys.assign(1, {unknown_sequence, outside_slot, count});
  }
  row.keys = std::move(keys);
  row.expect = row.keys.empty() ? RowExpectation::zero : RowExpectation::value;
}

std::vector<AttendedRow> QueryRows::take(const Problem& problem) && {
  const auto padded = [](const Request& request) { return !request.live; };
  if (std::none_of(problem.requests.begin(), problem.requests.end(), padded)) {
    return std::move(rows_);
  }
  Attended truth = attended(problem);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    AttendedRow& row = rows_[r];
    if (row.request < 0 || row.expect == RowExpectation::untouched) continue;
    if (padded(problem.requests[static_cast<std::size_t>(row.request)])) {
      row = std::move(truth.rows[r]);
    }
  }
  return std::move(rows_);
}

}  // namespace attest
