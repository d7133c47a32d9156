#include "contracts/rules/custom_mask.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures/draft_mask.hpp"
#include "contracts/signatures/refusals.hpp"

namespace attest {
namespace {

std::int64_t mask_entries(const Request& r) { return r.new_tokens * (r.committed + r.new_tokens); }

/// Entries that the kernel loads for request i, as its offsets give it rows and keys; no offset is
/// checked here, so hostile ones count as more than any mask holds.
std::int64_t loaded_entries(const LegacyExtendCall& c, std::size_t i) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto length = [&](const IntArray& offsets) {
    std::int64_t n = 0;
    if (!offsets.recorded || i + 1 >= offsets.values.size()) return n;
    if (__builtin_sub_overflow(offsets.values[i + 1], offsets.values[i], &n)) return most;
    return std::clamp<std::int64_t>(n, 0, most);
  };
  const std::int64_t rows = length(c.qo_indptr);
  return rows * (length(c.kv_indptr) + rows);
}

void is_given_for_trees(const LegacyExtendCall& c, const Truth& truth, Report& report) {
  const std::vector<Request>& requests = truth.problem.requests;
  const bool trees = !std::all_of(requests.begin(), requests.end(),
                                  [](const Request& r) { return !r.live || is_chain(r); });
  if (trees && !c.custom_mask) {
    report.add("custom_mask", "absent", "a mask: the drafts are no chain");
  } else if (!c.custom_mask && !c.is_causal && truth.problem.max_new_tokens() > 1) {
    report.add("is_causal", "false", "true, or a mask: a row must not see later tokens");
  }
}

void starts_where_the_rows_are(const LegacyExtendCall& c, const Truth& truth, Report& report) {
  if (!c.custom_mask) return;
  if (!c.mask_indptr) {
    report.add(Severity::fault, "mask_indptr", "absent", "present with a custom_mask");
    return;
  }
  if (!recorded(*c.mask_indptr, "mask_indptr", report)) return;
  const std::vector<Request>& requests = truth.problem.requests;
  const IntArray& starts = *c.mask_indptr;
  if (starts.size(0) < static_cast<std::int64_t>(requests.size())) {
    report.add(Severity::fault, "mask_indptr.shape[0]", std::to_string(starts.size(0)),
               std::to_string(requests.size()) + ", one start per request");
    return;
  }
  const std::int64_t entries = c.custom_mask->numel();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // A live request's rows are the scheduler's: its offsets have rules of their own.
    const std::int64_t needed = requests[i].live ? mask_entries(requests[i]) : loaded_entries(c, i);
    const std::int64_t got = starts.values[i];
    if (got < 0 || needed > entries || got > entries - needed) {
      // Of a padded row nobody reads what comes out, but the load is made all the same.
      report.add(requests[i].live ? Severity::fault : Severity::policy, entry("mask_indptr", i),
                 std::to_string(got),
                 "in [0, " + std::to_string(entries) + " - " + std::to_string(needed) +
                     "], the rows of request " + std::to_string(i) + " inside custom_mask");
    }
  }
}

void follows_the_lengths(const LegacyExtendCall& c, const Truth& truth, Report& report) {
  if (!c.custom_mask || !c.mask_indptr || !recorded(*c.mask_indptr, "mask_indptr", report)) return;
  const std::vector<Request>& requests = truth.problem.requests;
  const std::vector<std::int64_t>& starts = c.mask_indptr->values;
  for (std::size_t i = 0; i < requests.size() && i + 1 < starts.size(); ++i) {
    if (!counts(requests[i], truth.problem)) continue;
    std::int64_t step = 0;
    if (__builtin_sub_overflow(starts[i + 1], starts[i], &step)) step = -1;
    if (step == mask_entries(requests[i])) continue;
    // Nobody reads where the last request's rows end.
    const Severity severity = i + 1 < requests.size() ? Severity::wrong : Severity::policy;
    report.add(severity, entry("mask_indptr", i + 1) + " - " + entry("mask_indptr", i),
               std::to_string(step),
               std::to_string(mask_entries(requests[i])) + " = new * (committed + new)");
  }
}

void is_a_mask_of_bytes(const LegacyExtendCall& c, const Truth&, Report& report) {
  if (!c.custom_mask) return;
  const Dtype dtype = c.custom_mask->meta.dtype;
  if (dtype == Dtype::boolean || dtype == Dtype::uint8) return;
  report.add("custom_mask.dtype", std::string(name(dtype)), "bool or uint8");
}

std::string cell(std::size_t i, std::int64_t t, std::int64_t k) {
  return "custom_mask of request " + std::to_string(i) + ", row " + std::to_string(t) +
         ", column " + std::to_string(k);
}

/// First entry of row t that differs from what the tree shows, or -1.
std::int64_t first_difference(std::span<const std::int64_t> row, const Request& r, std::int64_t t,
                              bool prefix_too) {
  const auto committed = static_cast<std::size_t>(r.committed);
  for (std::size_t k = 0; prefix_too && k < committed; ++k) {
    if (row[k] == 0) return static_cast<std::int64_t>(k);
  }
  std::vector<std::int64_t> seen(static_cast<std::size_t>(r.new_tokens), 0);
  show_ancestors(r, t, seen);
  for (std::size_t u = 0; u < seen.size(); ++u) {
    if ((row[committed + u] != 0) != (seen[u] != 0))
      return r.committed + static_cast<std::int64_t>(u);
  }
  return -1;
}

void is_the_tree(const LegacyExtendCall& c, const Truth& truth, Report& report) {
  if (!c.custom_mask || !c.mask_indptr) return;
  if (!recorded(*c.custom_mask, "custom_mask", report)) return;
  if (!recorded(*c.mask_indptr, "mask_indptr", report)) return;
  const std::vector<std::int64_t>& mask = c.custom_mask->values;
  const std::vector<std::int64_t>& starts = c.mask_indptr->values;
  const std::vector<Request>& requests = truth.problem.requests;
  for (std::size_t i = 0; i < requests.size() && i < starts.size(); ++i) {
    const Request& r = requests[i];
    const std::int64_t start = starts[i];
    const auto entries = static_cast<std::int64_t>(mask.size());
    if (!r.live || start < 0 || mask_entries(r) > entries || start > entries - mask_entries(r)) {
      continue;
    }
    for (std::int64_t t = 0; t < r.new_tokens; ++t) {
      const auto row = std::span(mask).subspan(static_cast<std::size_t>(start + t * r.kv_len()),
                                               static_cast<std::size_t>(r.kv_len()));
      const std::int64_t k = first_difference(row, r, t, !c.skip_prefix_custom_mask);
      if (k < 0) continue;
      const bool shown = row[static_cast<std::size_t>(k)] != 0;
      report.add(cell(i, t, k), shown ? "1" : "0",
                 std::string(shown ? "0" : "1") + ", what the draft tree shows token " +
                     std::to_string(t));
    }
  }
}

constexpr std::string_view kernel =
    "sgl-project/sglang python/sglang/srt/layers/attention/triton_ops/extend_attention.py: "
    "custom_mask";

constexpr Rule rules[] = {
    {.id = "custom_mask.is_given_for_trees",
     .says = "drafts that are no chain come with a mask, and a call without one is causal",
     .why = "without it every draft sees its siblings' tokens as if they were its own",
     .source = kernel,
     .legacy_extend = is_given_for_trees},
    {.id = "mask_indptr.starts_where_the_rows_are",
     .says = "a mask comes with the start of each request's rows, all inside it",
     .why = "rows are read from there without a bounds check",
     .source = kernel,
     .severity = Severity::fault,
     .legacy_extend = starts_where_the_rows_are},
    {.id = "mask_indptr.follows_the_lengths",
     .says = "mask_indptr grows by new * (committed + new) entries a request",
     .why = "the kernel steps by committed + new inside a request: starts for other lengths give "
            "rows the mask of other rows",
     .source = "sgl-project/sglang#31221",
     .legacy_extend = follows_the_lengths},
    {.id = "custom_mask.has_one_byte_an_entry",
     .says = "custom_mask is bool or uint8",
     .why = "the kernel loads bytes",
     .source = kernel,
     .legacy_extend = is_a_mask_of_bytes},
    {.id = "custom_mask.is_the_draft_tree",
     .says = "a row of the mask shows the token, its ancestors, and no other new token",
     .why = "a draft that sees another branch is verified in the wrong context",
     .source = "sgl-project/sglang spec.cpp, build_tree_kernel_efficient",
     .legacy_extend = is_the_tree},
};

}  // namespace

std::span<const Rule> custom_mask_rules() { return rules; }

}  // namespace attest
