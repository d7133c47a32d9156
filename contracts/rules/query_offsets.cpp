#include "contracts/rules/query_offsets.hpp"

#include <algorithm>
#include <string>

#include "contracts/mla_kernels.hpp"
#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

/// The offsets of either signature, under the name its kernel gives them.
struct Offsets {
  std::string_view name;
  const IntArray& array;
  std::int64_t q_rows;

  std::int64_t operator[](std::size_t i) const { return array.values[i]; }
  std::int64_t length(std::size_t i) const { return array.values[i + 1] - array.values[i]; }
};

Offsets offsets_of(const UnifiedCall& c) { return {"cu_seqlens_q", c.cu_seqlens_q, c.q.size(0)}; }
Offsets offsets_of(const MlaDecodeCall& c) { return {"qo_indptr", c.qo_indptr, c.q.size(0)}; }
Offsets offsets_of(const BatchPrefillCall& c) {
  return {"cu_seqlens_q", c.cu_seqlens_q, c.q.size(0)};
}
Offsets offsets_of(const LegacyExtendCall& c) {
  return {"qo_indptr", c.qo_indptr, c.q_extend.size(0)};
}

Offsets offsets_of(const VllmCpuCall& c) {
  return {"query_start_loc", c.query_start_loc, c.query.size(0)};
}

/// Differences of hostile offsets could overflow; every later rule on lengths stops at these.
bool monotone(const Offsets& offsets, std::size_t batch) {
  for (std::size_t i = 0; i <= batch; ++i) {
    if (offsets[i] < 0 || (i > 0 && offsets[i] < offsets[i - 1])) return false;
  }
  return true;
}

template <class CallType>
void starts_at_zero(const CallType& call, const Truth&, Report& report) {
  const Offsets offsets = offsets_of(call);
  if (!recorded(offsets.array, offsets.name, report) || offsets[0] == 0) return;
  report.add(entry(offsets.name, 0), std::to_string(offsets[0]), "0");
}

template <class CallType>
void never_decreases(const CallType& call, const Truth& truth, Report& report) {
  const Offsets offsets = offsets_of(call);
  if (!recorded(offsets.array, offsets.name, report)) return;
  for (std::size_t i = 1; i <= truth.problem.requests.size(); ++i) {
    if (offsets[i] >= offsets[i - 1]) continue;
    report.add(entry(offsets.name, i), std::to_string(offsets[i]),
               std::to_string(offsets[i - 1]) + " or more, the entry before it");
  }
}

template <class CallType>
void ends_at_the_last_row(const CallType& call, const Truth& truth, Report& report) {
  const Offsets offsets = offsets_of(call);
  if (!recorded(offsets.array, offsets.name, report)) return;
  const Problem& problem = truth.problem;
  const std::size_t batch = problem.requests.size();
  // Rows of padded requests at the end need no offsets: nobody reads them.
  std::int64_t needed = problem.total_new_tokens();
  for (std::size_t i = batch; i > 0; --i) {
    if (counts(problem.requests[i - 1], problem)) break;
    needed -= problem.requests[i - 1].new_tokens;
  }
  const std::int64_t end = offsets[batch];
  const std::string where = entry(offsets.name, batch);
  if (end > offsets.q_rows) {
    report.add(Severity::fault, where, std::to_string(end),
               std::to_string(offsets.q_rows) + " or less, the rows of q");
  } else if (end < needed) {
    report.add(where, std::to_string(end),
               std::to_string(problem.total_new_tokens()) + " = the new tokens of all requests");
  }
}

template <class CallType>
void follow_the_real_lengths(const CallType& call, const Truth& truth, Report& report) {
  const Offsets offsets = offsets_of(call);
  const Problem& problem = truth.problem;
  if (!recorded(offsets.array, offsets.name, report) || !monotone(offsets, problem.requests.size()))
    return;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    if (!counts(r, problem)) {
      start += r.new_tokens;
      continue;
    }
    if (offsets.length(i) != r.new_tokens) {
      report.add(entry(offsets.name, i + 1) + " - " + entry(offsets.name, i),
                 std::to_string(offsets.length(i)),
                 std::to_string(r.new_tokens) + ", the new tokens of request " + std::to_string(i));
    } else if (offsets[i] != start && r.new_tokens > 0) {
      report.add(entry(offsets.name, i), std::to_string(offsets[i]),
                 std::to_string(start) + ", the first row of request " + std::to_string(i));
    }
    start += r.new_tokens;
  }
}

/// Longest request, padded rows left out or not.
std::int64_t longest(const Problem& problem, bool with_padding) {
  std::int64_t length = 0;
  for (const Request& r : problem.requests) {
    if (with_padding || counts(r, problem)) length = std::max(length, r.new_tokens);
  }
  return length;
}

/// Whether row i of q is the one row of request i, for every request that counts.
bool rows_are_requests(const Problem& problem) {
  std::int64_t row = 0;
  for (std::size_t i = 0; i < problem.requests.size(); ++i) {
    const Request& r = problem.requests[i];
    const bool own_row = r.new_tokens == 1 && row == static_cast<std::int64_t>(i);
    if (counts(r, problem) && r.new_tokens > 0 && !own_row) return false;
    row += r.new_tokens;
  }
  return true;
}

void max_seqlen_q_is_the_longest(const UnifiedCall& call, const Truth& truth, Report& report) {
  const Problem& problem = truth.problem;
  const std::int64_t got = call.max_seqlen_q;
  const std::int64_t real = longest(problem, /*with_padding=*/false);
  if (real == 0) return;
  if (got == 1 ? rows_are_requests(problem)
               : got == real || got == longest(problem, /*with_padding=*/true)) {
    return;
  }
  // 0 leaves no grid and 1 makes the kernel take row i for request i; what lies between 1 and the
  // longest only tunes a kernel that does not ask for the exact value.
  const bool short_of_exact = got < real && truth.capabilities.max_len_is_exact;
  report.add(got <= 1 || short_of_exact ? Severity::wrong : Severity::policy, "max_seqlen_q",
             std::to_string(got),
             got == 1 && real == 1
                 ? "2 or more: a request of another length shifts the rows after it"
                 : std::to_string(real) + ", the longest request's new tokens");
}

void max_seqlen_q_is_the_longest(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const std::int64_t real = longest(truth.problem, /*with_padding=*/false);
  if (real == 0 || call.max_seqlen_q == real) return;
  report.add("max_seqlen_q", std::to_string(call.max_seqlen_q),
             std::to_string(real) + ", the longest request's new tokens");
}

/// The grid covers `got` rows of every request, up to the end of a tile.
void covers_the_longest(std::string_view argument, std::int64_t got, const Truth& truth,
                        Report& report) {
  const std::int64_t real = longest(truth.problem, /*with_padding=*/false);
  if (real == 0 || got == real || got == longest(truth.problem, /*with_padding=*/true)) return;
  report.add(got < real ? Severity::wrong : Severity::policy, std::string(argument),
             std::to_string(got), std::to_string(real) + ", the longest request's new tokens");
}

void max_seqlen_q_is_the_longest(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  covers_the_longest("max_seqlen_q", call.max_seqlen_q, truth, report);
}

void max_seqlen_q_is_the_longest(const LegacyExtendCall& call, const Truth& truth, Report& report) {
  covers_the_longest("max_len_extend", call.max_len_extend, truth, report);
}

void length_is_uniform(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Offsets offsets = offsets_of(call);
  const std::size_t batch = truth.problem.requests.size();
  if (!recorded(offsets.array, offsets.name, report) || !monotone(offsets, batch)) return;
  for (std::size_t i = 0; i < batch; ++i) {
    if (offsets.length(i) == call.max_seqlen_q) continue;
    report.add(entry(offsets.name, i + 1) + " - " + entry(offsets.name, i),
               std::to_string(offsets.length(i)),
               std::to_string(call.max_seqlen_q) + " = max_seqlen_q for every request");
  }
}

void length_is_the_configured_one(const MlaDecodeCall& call, const Truth& truth, Report& report) {
  const Problem& problem = truth.problem;
  const bool drafts = problem.mode == Mode::target_verify || problem.mode == Mode::draft_extend_v2;
  if (!drafts || !problem.num_draft_tokens) return;
  if (call.max_seqlen_q == *problem.num_draft_tokens) return;
  report.add("max_seqlen_q", std::to_string(call.max_seqlen_q),
             std::to_string(*problem.num_draft_tokens) + " = num_draft_tokens");
}

void length_has_a_kernel(const MlaDecodeCall& call, const Truth&, Report& report) {
  const std::int64_t length = call.max_seqlen_q;
  const std::int64_t heads = call.q.size(1);
  const MlaSupport support = mla_support(call.q.dtype, call.kv_buffer.dtype, heads, length);
  const bool fp8_cache_only = is_fp8(call.kv_buffer.dtype) && !is_fp8(call.q.dtype);
  const bool power_of_two = length > 0 && (length & (length - 1)) == 0;
  if (fp8_cache_only && length > 4) {
    report.add(Severity::fault, "max_seqlen_q", std::to_string(length),
               "4 or less: no code object takes more with 16-bit q over an fp8 cache");
  } else if (length > 8) {
    report.add("max_seqlen_q", std::to_string(length),
               "8 or less, the longest a code object was built for on every GPU");
  } else if (!power_of_two) {
    report.add("max_seqlen_q", std::to_string(length),
               "a power of two: other lengths run on the next kernel up");
  } else if (support.known && support.where.empty()) {
    report.add("max_seqlen_q", std::to_string(length),
               "less: no GPU has a kernel for it with " + std::to_string(heads) + " heads");
  } else if (is_fp8(call.q.dtype) && !call.persistent && !mla_fp8_launch_is_listed(heads, length)) {
    report.add("max_seqlen_q", std::to_string(length),
               "another, or work lists: launches of fp8 q without them are listed by heads times "
               "length, and " +
                   std::to_string(heads) + " * " + std::to_string(length) + " is not");
  }
}

constexpr Rule rules[] = {
    {.id = "query_offsets.start_at_zero",
     .says = "the first query offset is 0",
     .why = "rows of q before it are never computed and later requests read shifted rows",
     .source = "sgl-project/sglang#36915",
     .unified = starts_at_zero<UnifiedCall>,
     .mla_decode = starts_at_zero<MlaDecodeCall>,
     .batch_prefill = starts_at_zero<BatchPrefillCall>,
     .legacy_extend = starts_at_zero<LegacyExtendCall>,
     .vllm_cpu = starts_at_zero<VllmCpuCall>},
    {.id = "query_offsets.never_decrease",
     .says = "query offsets never decrease",
     .why = "kernels find a row's request by binary search over them",
     .source = "ROCm/aiter aiter/ops/triton/_triton_kernels/attention/unified_attention.py: "
               "find_seq_idx",
     .severity = Severity::fault,
     .unified = never_decreases<UnifiedCall>,
     .mla_decode = never_decreases<MlaDecodeCall>,
     .batch_prefill = never_decreases<BatchPrefillCall>,
     .legacy_extend = never_decreases<LegacyExtendCall>,
     .vllm_cpu = never_decreases<VllmCpuCall>},
    {.id = "query_offsets.end_at_the_last_row",
     .says = "the last query offset is the number of new tokens, and q has that many rows",
     .why = "beyond q the kernel reads and writes out of bounds; below it rows keep old bytes",
     .source = "sgl-project/sglang#36915",
     .unified = ends_at_the_last_row<UnifiedCall>,
     .mla_decode = ends_at_the_last_row<MlaDecodeCall>,
     .batch_prefill = ends_at_the_last_row<BatchPrefillCall>,
     .legacy_extend = ends_at_the_last_row<LegacyExtendCall>,
     .vllm_cpu = ends_at_the_last_row<VllmCpuCall>},
    {.id = "query_offsets.follow_the_real_lengths",
     .says = "request i has as many rows as it has new tokens, from its own first row on",
     .why = "a width taken from the configuration or from rows // batch gives requests the rows "
            "and causal limits of others; with one request it hides",
     .source = "sgl-project/sglang#31221",
     .unified = follow_the_real_lengths<UnifiedCall>,
     .mla_decode = follow_the_real_lengths<MlaDecodeCall>,
     .batch_prefill = follow_the_real_lengths<BatchPrefillCall>,
     .legacy_extend = follow_the_real_lengths<LegacyExtendCall>,
     .vllm_cpu = follow_the_real_lengths<VllmCpuCall>},
    {.id = "max_seqlen_q.is_the_longest_request",
     .says = "max_seqlen_q (max_len_extend) is the largest number of new tokens in the batch",
     .why = "1 makes unified take row i for request i, 0 computes nothing; MLA multiplies by it; "
            "batch_prefill and legacy_extend compute that many rows. "
            "Other values only tune a kernel that does not ask for the exact one",
     .source = "sgl-project/sglang#36915",
     .unified = max_seqlen_q_is_the_longest,
     .mla_decode = max_seqlen_q_is_the_longest,
     .batch_prefill = max_seqlen_q_is_the_longest,
     .legacy_extend = max_seqlen_q_is_the_longest},
    {.id = "draft_length.is_uniform",
     .says = "every request of an MLA decode call has max_seqlen_q rows",
     .why = "the kernel's q stride per request is max_seqlen_q rows, whatever the offsets say",
     .source = "ROCm/aiter aiter/mla.py: mla_decode_fwd; sgl-project/sglang#31221",
     .mla_decode = length_is_uniform},
    {.id = "draft_length.is_the_configured_one",
     .says = "MLA verify and draft extend run with the server's num_draft_tokens",
     .why = "work lists and graphs are built for that length; another one gives rows the causal "
            "limits of that length",
     .source = "vllm-project/vllm#45227; sgl-project/sglang#31221",
     .mla_decode = length_is_the_configured_one},
    {.id = "draft_length.has_a_kernel",
     .says = "MLA's max_seqlen_q is one that code objects were built for",
     .why = "odd lengths gave every position the first one's output on one GPU, long ones abort "
            "at capture; which lengths work depends on GPU, dtypes and heads",
     .source = "ROCm/aiter#2720; ROCm/aiter#4752",
     .severity = Severity::policy,
     .mla_decode = length_has_a_kernel},
};

}  // namespace

std::span<const Rule> query_offsets_rules() { return rules; }

}  // namespace attest
