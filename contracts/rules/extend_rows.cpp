#include "contracts/rules/extend_rows.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

void counts_the_new_tokens(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!recorded(c.extend_seq_lens, "extend_seq_lens", report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (!r.live || c.extend_seq_lens[i] == r.new_tokens) continue;
    report.add(entry("extend_seq_lens", static_cast<std::int64_t>(i)),
               std::to_string(c.extend_seq_lens[i]),
               std::to_string(r.new_tokens) + " new tokens in the input");
  }
}

void sums_to_the_rows(const ExtendCall& c, const Truth&, Report& report) {
  if (!recorded(c.extend_seq_lens, "extend_seq_lens", report)) return;
  std::int64_t sum = 0;
  for (const std::int64_t len : c.extend_seq_lens.values) {
    if (__builtin_add_overflow(sum, len, &sum)) sum = -1;
  }
  if (sum == c.q_extend.size(0)) return;
  report.add("extend_seq_lens", std::to_string(sum) + " in sum",
             std::to_string(c.q_extend.size(0)) + ", the rows of q_extend");
}

void starts_where_the_request_does(const ExtendCall& c, const Truth& truth, Report& report) {
  if (!recorded(c.extend_start_loc, "extend_start_loc", report)) return;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    // Without new tokens there is no row to start at.
    if (r.live && r.new_tokens > 0 && c.extend_start_loc[i] != row) {
      report.add(entry("extend_start_loc", static_cast<std::int64_t>(i)),
                 std::to_string(c.extend_start_loc[i]),
                 std::to_string(row) + ", where request " + std::to_string(i) + " starts in q");
    }
    row += r.new_tokens;
  }
}

/// Rows [first, last) of q that a request writes.
struct RowRange {
  std::int64_t first, last;
  std::size_t request;
};

void ranges_are_apart(const ExtendCall& c, const Truth&, Report& report) {
  if (!recorded(c.extend_start_loc, "extend_start_loc", report)) return;
  if (!recorded(c.extend_seq_lens, "extend_seq_lens", report)) return;
  std::vector<RowRange> ranges;
  for (std::size_t i = 0; i < c.extend_seq_lens.values.size(); ++i) {
    RowRange range{c.extend_start_loc[i], 0, i};
    if (c.extend_seq_lens[i] <= 0) continue;
    const bool overflow = __builtin_add_overflow(range.first, c.extend_seq_lens[i], &range.last);
    if (overflow || range.first < 0 || range.last > c.q_extend.size(0)) {
      report.add(
          entry("extend_start_loc", static_cast<std::int64_t>(i)),
          std::to_string(range.first) + " with " + std::to_string(c.extend_seq_lens[i]) + " rows",
          "rows inside the " + std::to_string(c.q_extend.size(0)) + " of q_extend");
      continue;
    }
    ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.first < b.first; });
  for (std::size_t n = 1; n < ranges.size(); ++n) {
    if (ranges[n].first >= ranges[n - 1].last) continue;
    report.add(entry("extend_start_loc", static_cast<std::int64_t>(ranges[n].request)),
               std::to_string(ranges[n].first),
               "a row past request " + std::to_string(ranges[n - 1].request) + "'s, which end at " +
                   std::to_string(ranges[n - 1].last));
  }
}

void is_the_longest(const ExtendCall& c, const Truth& truth, Report& report) {
  const std::int64_t longest = truth.problem.max_new_tokens();
  if (c.max_len_extend == longest) return;
  const bool larger = c.max_len_extend > longest;
  const Severity severity = larger && c.tree_mask                            ? Severity::fault
                            : larger && !truth.capabilities.max_len_is_exact ? Severity::policy
                                                                             : Severity::wrong;
  report.add(severity, "max_len_extend", std::to_string(c.max_len_extend),
             std::to_string(longest) + ", the new tokens of the longest request");
}

constexpr Rule rules[] = {
    {.id = "extend_seq_lens.counts_the_new_tokens",
     .says = "extend_seq_lens[i] is the number of tokens the input holds for request i, lengths "
             "that differ inside the batch included",
     .why = "a verify length taken from the server argument, or from rows // batch, shifts every "
            "later request's rows and keys",
     .source = "sgl-project/sglang#31221",
     .severity = Severity::wrong,
     .extend = counts_the_new_tokens},
    {.id = "extend_seq_lens.sums_to_the_rows_of_q",
     .says = "extend_seq_lens add up to the rows of q_extend",
     .why = "rows that no request covers keep whatever the output buffer held",
     .source = "sgl-project/sglang#31221",
     .severity = Severity::wrong,
     .extend = sums_to_the_rows},
    {.id = "extend_start_loc.is_where_the_request_starts",
     .says = "extend_start_loc is the exclusive prefix sum of the new tokens",
     .why = "the kernel reads q, k and v and writes o of the request from that row on",
     .source = "sgl-project/sglang#31221",
     .severity = Severity::wrong,
     .extend = starts_where_the_request_does},
    {.id = "extend_start_loc.ranges_are_apart",
     .says = "the rows [start, start + length) of all requests lie inside q and do not overlap",
     .why = "nothing is checked: past q it reads and writes out of bounds, overlapping rows are "
            "written by two threads",
     .source = "sgl-project/sglang sgl-kernel/csrc/cpu/extend.cpp, extend_start_loc",
     .severity = Severity::fault,
     .extend = ranges_are_apart},
    {.id = "max_len_extend.is_the_longest_request",
     .says = "max_len_extend is the number of new tokens of the longest request",
     .why =
         "it bounds the work: rows of blocks past it are never computed. A larger one comes from "
         "a server argument instead of the input; with a tree mask the kernel refuses it, "
         "without one it only changes the blocking",
     .source = "sgl-project/sglang#31221; sgl-kernel/csrc/cpu/extend.cpp, max_len_extend",
     .severity = Severity::wrong,
     .extend = is_the_longest},
};

}  // namespace

std::span<const Rule> extend_rows_rules() { return rules; }

}  // namespace attest
