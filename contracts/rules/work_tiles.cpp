#include "contracts/rules/work_tiles.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

using Rows = std::pair<std::int64_t, std::int64_t>;
constexpr std::int64_t folded_heads = 16;  ///< that a planner without a kernel for more plans for
constexpr std::int64_t most_folded = 128;
constexpr std::int64_t most_rows = std::int64_t{1} << 40;

std::string range_text(std::int64_t first, std::int64_t last) {
  return "[" + std::to_string(first) + ", " + std::to_string(last) + ")";
}

std::string list_text(const std::vector<std::int64_t>& values) {
  constexpr std::size_t shown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), shown); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  }
  if (values.size() > shown) text += ", and " + std::to_string(values.size() - shown) + " more";
  return values.empty() ? "none" : text;
}

/// What a row tile's merge must hold.
struct Expected {
  std::vector<std::int64_t> partials;
  bool merged = false, padding = false;
};

}  // namespace

bool judged_work_lists(const MlaDecodeCall& call) {
  return call.persistent && call.kv_indptr.recorded && call.kv_last_page_lens.recorded &&
         !work_lists_error(call);
}

WorkTiles::WorkTiles(const MlaDecodeCall& call) : call_(call), lists_(work_lists(call)) {
  batch_ = std::max<std::int64_t>(static_cast<std::int64_t>(call.kv_indptr.values.size()) - 1, 0);
  length_ = std::clamp<std::int64_t>(call.max_seqlen_q, 1, std::int64_t{1} << 20);
  page_ = std::clamp<std::int64_t>(call.page_size, 1, std::int64_t{1} << 20);
  std::int64_t behind = 0;
  for (const WorkItem& work : lists_.works) behind = std::max(behind, work.last_row);
  const std::int64_t heads = call.q.size(1);
  const bool foldable = heads > folded_heads && heads <= most_folded && heads % folded_heads == 0;
  if (foldable && behind > batch_ * length_) fold_ = heads / folded_heads;
  rows_per_request_ = length_ * fold_;
  const std::optional<WorkArrays> arrays = work_arrays(call);
  partial_rows_ = arrays ? arrays->reduce_partial_map.size(0) * length_ : 0;
}

std::int64_t WorkTiles::first_key(std::int64_t request) const {
  return std::clamp(call_.kv_indptr.values[static_cast<std::size_t>(request)], -most_rows,
                    most_rows);
}

std::int64_t WorkTiles::last_key(std::int64_t request) const { return first_key(request + 1); }

bool WorkTiles::is_padding(const WorkItem& work, const Problem& problem) const {
  const std::int64_t request = request_of(work.first_row);
  const auto index = static_cast<std::size_t>(std::max<std::int64_t>(request, 0));
  return index >= problem.requests.size() || !counts(problem.requests[index], problem);
}

std::optional<GotExpected> WorkTiles::misplaced(const WorkItem& work) const {
  if (is_empty(work)) return std::nullopt;
  const std::int64_t rows = batch_ * rows_per_request_;
  const std::string got = "request " + std::to_string(work.request) + ", rows " +
                          range_text(work.first_row, work.last_row) + ", keys " +
                          range_text(work.first_key, work.last_key);
  if (work.first_row < 0 || work.last_row > rows) {
    return GotExpected{got, "rows of the launch's " + range_text(0, rows)};
  }
  const std::int64_t request = request_of(work.first_row);
  const std::int64_t first_row = request * rows_per_request_;
  // Heads folded into requests: the planner counts those.
  const bool named =
      work.request == request || (fold_ > 1 && work.request == work.first_row / length_);
  if (!named || request_of(work.last_row - 1) != request) {
    return GotExpected{got, "rows of one request: those of request " + std::to_string(request) +
                                " are " + range_text(first_row, first_row + rows_per_request_)};
  }
  if (work.first_key < first_key(request) || work.last_key > last_key(request)) {
    return GotExpected{
        got, "keys among the request's " + range_text(first_key(request), last_key(request))};
  }
  return std::nullopt;
}

std::int64_t WorkTiles::tokens_after(const WorkItem& work) const {
  const std::int64_t request = request_of(work.first_row);
  const std::int64_t pages = last_key(request) - work.last_key;
  if (page_ == 1 || pages == 0) return pages;
  const auto index = static_cast<std::size_t>(request);
  const std::vector<std::int64_t>& lens = call_.kv_last_page_lens.values;
  return (pages - 1) * page_ +
         (index < lens.size() ? std::clamp<std::int64_t>(lens[index], 0, page_) : 0);
}

std::int64_t WorkTiles::needed_end(std::int64_t row) const {
  const std::int64_t request = request_of(row);
  const std::int64_t within = row % rows_per_request_;
  // Folded rows lie token by token or head group by head group: what both need.
  const std::int64_t token = std::min(within / fold_, within % length_);
  const std::int64_t hidden = length_ - 1 - token;
  return std::max(first_key(request), last_key(request) - (hidden + page_ - 1) / page_);
}

std::optional<RowCover> WorkTiles::wrong_cover(std::int64_t row,
                                               std::vector<const WorkItem*> works) const {
  const std::int64_t request = request_of(row);
  const std::int64_t end = needed_end(row);
  const std::string expected =
      "each of its keys " + range_text(first_key(request), end) + " in one work";
  std::ranges::sort(works, {}, [](const WorkItem* w) { return Rows(w->first_key, w->last_key); });
  std::int64_t at = first_key(request);
  for (const WorkItem* work : works) {
    const std::int64_t first = std::min(work->first_key, end);
    const std::int64_t last = std::min(work->last_key, end);
    if (first >= last) continue;
    if (first != at) {
      const bool twice = first < at;
      return RowCover{row, request,
                      "keys " +
                          (twice ? range_text(first, std::min(at, last)) : range_text(at, first)) +
                          (twice ? " in two works" : " in no work"),
                      expected};
    }
    at = last;
  }
  if (at >= end) return std::nullopt;
  return RowCover{row, request, "keys " + range_text(at, end) + " in no work", expected};
}

std::vector<RowCover> WorkTiles::wrong_covers(const Problem& problem) const {
  std::map<Rows, std::vector<const WorkItem*>> tiles;
  for (const WorkItem& work : lists_.works) {
    const bool counted = !is_empty(work) && !misplaced(work);
    if (counted) tiles[{work.first_row, work.last_row}].push_back(&work);
  }
  std::vector<RowCover> wrong;
  const auto requests = std::min(batch_, static_cast<std::int64_t>(problem.requests.size()));
  for (std::int64_t i = 0; i < requests; ++i) {
    if (!counts(problem.requests[static_cast<std::size_t>(i)], problem)) continue;
    const std::int64_t end = (i + 1) * rows_per_request_;
    std::int64_t row = i * rows_per_request_;
    const auto keys = "each of its keys in one work";
    for (auto tile = tiles.lower_bound({row, 0}); tile != tiles.end() && tile->first.first < end;
         ++tile) {
      const auto [first, last] = tile->first;
      if (first > row) wrong.push_back({row, i, "in no work", keys});
      if (first < row) wrong.push_back({first, i, "in two tiles", keys});
      row = std::max(row, last);
      if (auto error = wrong_cover(last - 1, tile->second)) wrong.push_back(*std::move(error));
    }
    if (row < end && needed_end(row) > first_key(i)) wrong.push_back({row, i, "in no work", keys});
  }
  return wrong;
}

std::vector<MergeError> WorkTiles::wrong_merges(const Problem& problem) const {
  std::vector<MergeError> wrong;
  std::map<Rows, std::vector<const WorkItem*>> tiles;
  for (const WorkItem& work : lists_.works) {
    if (work.first_row < work.last_row) tiles[{work.first_row, work.last_row}].push_back(&work);
  }
  std::map<Rows, Expected> expected;
  for (const auto& [rows, works] : tiles) {
    if (is_padding(*works.front(), problem)) {
      expected[rows].padding = true;
      continue;
    }
    for (const WorkItem* work : works) {
      if (work->partial >= 0) {
        expected[rows].partials.push_back(work->partial);
      } else if (works.size() > 1) {
        wrong.push_back({entry("work_info_set", work->index, 1), std::to_string(work->partial),
                         "a row of the partial results: " + std::to_string(works.size()) +
                             " works share the rows " + range_text(rows.first, rows.second)});
      }
    }
  }
  for (const MergeItem& merge : lists_.merges) {
    const auto tile = expected.find({merge.first_row, merge.last_row});
    const std::string place = entry("reduce_final_map", merge.index);
    if (tile == expected.end()) {
      wrong.push_back({place, "rows " + range_text(merge.first_row, merge.last_row),
                       "the rows of works with partial results"});
      continue;
    }
    if (tile->second.padding) continue;
    std::vector<std::int64_t> got = merge.partials;
    std::ranges::sort(got);
    std::ranges::sort(tile->second.partials);
    if (tile->second.merged) {
      wrong.push_back({place, "rows merged before", "each row tile in one entry"});
    } else if (got != tile->second.partials) {
      wrong.push_back({"the partials of " + place, list_text(got),
                       list_text(tile->second.partials) + ", those of its works"});
    }
    tile->second.merged = true;
  }
  for (const auto& [rows, tile] : expected) {
    if (tile.merged || tile.padding) continue;
    wrong.push_back({"reduce_final_map",
                     "no entry for the rows " + range_text(rows.first, rows.second),
                     "one: their partial results are " + list_text(tile.partials)});
  }
  return wrong;
}

}  // namespace attest
