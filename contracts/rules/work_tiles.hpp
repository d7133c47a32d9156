#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contracts/problem.hpp"
#include "contracts/work_lists.hpp"

namespace attest {

/// Whether the launch is decided by lists whose values are there to judge.
bool judged_work_lists(const MlaDecodeCall& call);

/// What is wrong with a value, and what it should be.
struct GotExpected {
  std::string got, expected;
};
/// A row of q (in the order of the lists) whose keys are not covered once.
struct RowCover {
  std::int64_t row = 0, request = 0;
  std::string got, expected;
};
struct MergeError {
  std::string where, got, expected;
};

/// The works of a call by row tile. Where the planner folded the heads into rows or requests of 16
/// heads each (32 to 128 heads without a kernel of their own), a request has that many times its
/// rows. \pre judged_work_lists
class WorkTiles {
 public:
  explicit WorkTiles(const MlaDecodeCall& call);

  const WorkLists& lists() const { return lists_; }
  /// Rows of the buffer of partial results.
  std::int64_t partial_rows() const { return partial_rows_; }
  /// Whether a work does nothing: the planner makes such of a request without keys.
  static bool is_empty(const WorkItem& work) {
    return work.first_row >= work.last_row || work.first_key >= work.last_key;
  }
  /// Whether nobody reads what a work computes. \pre !misplaced(work)
  bool is_padding(const WorkItem& work, const Problem& problem) const;
  /// Why a work's rows or keys are not its request's.
  std::optional<GotExpected> misplaced(const WorkItem& work) const;
  /// Tokens of the request behind the work's last key. \pre !misplaced(work)
  std::int64_t tokens_after(const WorkItem& work) const;
  /// Rows with a key in no work or in two, the first of each tile. Requests that are not live count
  /// for nothing.
  std::vector<RowCover> wrong_covers(const Problem& problem) const;
  /// Tiles of padding count for nothing.
  std::vector<MergeError> wrong_merges(const Problem& problem) const;

 private:
  std::int64_t request_of(std::int64_t row) const { return row / rows_per_request_; }
  std::int64_t first_key(std::int64_t request) const;
  std::int64_t last_key(std::int64_t request) const;
  /// Entries of kv_indices that row `row` needs: the causal order hides the newest tokens from it.
  std::int64_t needed_end(std::int64_t row) const;
  std::optional<RowCover> wrong_cover(std::int64_t row, std::vector<const WorkItem*> works) const;

  const MlaDecodeCall& call_;
  WorkLists lists_;
  std::int64_t batch_ = 0, length_ = 1, page_ = 1, fold_ = 1, rows_per_request_ = 1,
               partial_rows_ = 0;
};

}  // namespace attest
