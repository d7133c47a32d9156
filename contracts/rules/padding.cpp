#include "contracts/rules/padding.hpp"

#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

/// Where a batch row's KV length stands, or nothing when it was not recorded or overflows.
struct KvLength {
  std::string where;
  std::int64_t value = 0;
};

bool lengths_recorded(const UnifiedCall& c) { return c.seqused_k.recorded; }
bool lengths_recorded(const VllmCpuCall& c) { return c.seq_lens.recorded; }
bool lengths_recorded(const MlaDecodeCall& c) { return c.kv_indptr.recorded && c.page_size == 1; }

bool lengths_recorded(const BatchPrefillCall& c) { return c.kv_indptr.recorded; }
bool lengths_recorded(const PagedRaggedCall& c) {
  return c.kv_indptr.recorded && c.block_size == 1;
}

KvLength kv_length(const UnifiedCall& c, std::size_t i) {
  return {entry("seqused_k", i), c.seqused_k[i]};
}

KvLength kv_length(const VllmCpuCall& c, std::size_t i) {
  return {entry("seq_lens", i), c.seq_lens[i]};
}

KvLength indptr_length(const IntArray& kv_indptr, std::size_t i) {
  std::int64_t length = 0;
  if (__builtin_sub_overflow(kv_indptr[i + 1], kv_indptr[i], &length)) length = -1;
  return {entry("kv_indptr", i + 1) + " - " + entry("kv_indptr", i), length};
}

KvLength kv_length(const MlaDecodeCall& c, std::size_t i) { return indptr_length(c.kv_indptr, i); }
KvLength kv_length(const BatchPrefillCall& c, std::size_t i) {
  return indptr_length(c.kv_indptr, i);
}
KvLength kv_length(const PagedRaggedCall& c, std::size_t i) {
  return indptr_length(c.kv_indptr, i);
}

std::int64_t last_offset(const UnifiedCall& c, std::size_t batch) { return c.cu_seqlens_q[batch]; }
std::int64_t last_offset(const MlaDecodeCall& c, std::size_t batch) { return c.qo_indptr[batch]; }
std::int64_t last_offset(const BatchPrefillCall& c, std::size_t batch) {
  return c.cu_seqlens_q[batch];
}
std::int64_t last_offset(const VllmCpuCall& c, std::size_t batch) {
  return c.query_start_loc[batch];
}
bool offsets_recorded(const VllmCpuCall& c) { return c.query_start_loc.recorded; }
bool offsets_recorded(const UnifiedCall& c) { return c.cu_seqlens_q.recorded; }
bool offsets_recorded(const MlaDecodeCall& c) { return c.qo_indptr.recorded; }
bool offsets_recorded(const BatchPrefillCall& c) { return c.cu_seqlens_q.recorded; }

const TensorMeta& query_of(const UnifiedCall& c) { return c.q; }
const TensorMeta& query_of(const MlaDecodeCall& c) { return c.q; }
const TensorMeta& query_of(const BatchPrefillCall& c) { return c.q; }
const TensorMeta& query_of(const VllmCpuCall& c) { return c.query; }

template <class CallType>
void rows_have_keys(const CallType& call, const Truth& truth, Report& report) {
  if (!lengths_recorded(call)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (r.live || r.new_tokens == 0) continue;
    const KvLength length = kv_length(call, i);
    if (length.value >= r.new_tokens) continue;
    report.add(length.where, std::to_string(length.value),
               std::to_string(r.new_tokens) + " or more: a key for every row of a padded request");
  }
}

template <class CallType>
void rows_have_the_modes_length(const CallType& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  if (!lengths_recorded(call) || p.mode == Mode::draft_decode) return;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    if (length_counts(r, p)) continue;  // judged in full elsewhere
    const KvLength length = kv_length(call, i);
    if (length.value < r.new_tokens || length.value == r.kv_len()) continue;
    report.add(length.where, std::to_string(length.value), length_text(r) + ", as captured");
  }
}

template <class CallType>
void q_ends_with_the_offsets(const CallType& call, const Truth& truth, Report& report) {
  if (!offsets_recorded(call)) return;
  const std::int64_t end = last_offset(call, truth.problem.requests.size());
  const std::int64_t rows = query_of(call).size(0);
  if (end < 0 || rows <= end) return;
  report.add("q.shape[0]", std::to_string(rows), std::to_string(end) + ", the last query offset");
}

constexpr Rule rules[] = {
    {.id = "padding.rows_have_keys",
     .says = "a padded row has at least as many keys as rows",
     .why = "rows before the first key come out NaN in one form and 0 in another: harmless in a "
            "row nobody reads, until its output is stored in a page that somebody does",
     .source = "huggingface/transformers#46765",
     .severity = Severity::policy,
     .unified = rows_have_keys<UnifiedCall>,
     .mla_decode = rows_have_keys<MlaDecodeCall>,
     .batch_prefill = rows_have_keys<BatchPrefillCall>,
     .paged_ragged = rows_have_keys<PagedRaggedCall>,
     .vllm_cpu = rows_have_keys<VllmCpuCall>},
    {.id = "padding.rows_have_the_modes_length",
     .says = "a padded row has the KV length that the capture gave it",
     .why = "anything else is a stale request's: work for nothing, reads of freed pages",
     .source = "sgl-project/sglang#22958",
     .severity = Severity::policy,
     .unified = rows_have_the_modes_length<UnifiedCall>,
     .mla_decode = rows_have_the_modes_length<MlaDecodeCall>,
     .batch_prefill = rows_have_the_modes_length<BatchPrefillCall>,
     .paged_ragged = rows_have_the_modes_length<PagedRaggedCall>,
     .vllm_cpu = rows_have_the_modes_length<VllmCpuCall>},
    {.id = "padding.q_ends_with_the_offsets",
     .says = "q has no rows past the last query offset",
     .why = "one form leaves their output untouched, the other writes what it finds in its "
            "workspace",
     .source = "sgl-project/sglang#19902",
     .severity = Severity::policy,
     .unified = q_ends_with_the_offsets<UnifiedCall>,
     .mla_decode = q_ends_with_the_offsets<MlaDecodeCall>,
     .batch_prefill = q_ends_with_the_offsets<BatchPrefillCall>,
     .vllm_cpu = q_ends_with_the_offsets<VllmCpuCall>},
};

}  // namespace

std::span<const Rule> padding_rules() { return rules; }

}  // namespace attest
