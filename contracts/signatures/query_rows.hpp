#pragma once

#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/call.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// The rows of q while a reader finds out what covers them.
class QueryRows {
 public:
  /// One untouched row per row of `q`, labelled with the Problem's (request, token). A q longer
  /// than the Problem is cut at 65536 rows: past its tokens there is nothing to compare.
  QueryRows(const TensorMeta& q, const Problem& problem);

  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Offsets so scrambled that rows were covered again and again: reading on would only cost time.
  bool exhausted() const { return covered_ > 8 * count() + 1024; }

  /// The kernel computes row r from `keys`. A later cover of the same row replaces the earlier
  /// one, as a later store does. \pre 0 <= r < count()
  void cover(std::int64_t r, std::vector<KeyRun> keys);

  /// The rows. Covered rows of requests that are not live mean nothing: they stand as attended()
  /// has them.
  std::vector<AttendedRow> take(const Problem& problem) &&;

 private:
  std::vector<AttendedRow> rows_;
  std::int64_t covered_ = 0;
  std::int64_t runs_ = 0;
};

/// Metadata values saturate here, so that sums of a few stay inside 63 bits: no token, row or page
/// of a Problem is that large.
inline constexpr std::int64_t largest_count = std::int64_t{1} << 48;
std::int64_t saturated(std::int64_t value);

}  // namespace attest
