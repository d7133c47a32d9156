#include "contracts/rules/seqused_k.hpp"

#include <algorithm>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"

namespace attest {
namespace {

constexpr std::int64_t two_gib = std::int64_t{1} << 31;

void counts_this_steps_tokens(std::string_view name, const IntArray& lengths, const Truth& truth,
                              Report& report) {
  if (!recorded(lengths, name, report)) return;
  for (std::size_t i = 0; i < truth.problem.requests.size(); ++i) {
    const Request& r = truth.problem.requests[i];
    if (lengths[i] == r.kv_len() || !length_counts(r, truth.problem)) continue;
    // A request without rows asks for nothing, so its length hides nothing.
    if (r.new_tokens == 0 && lengths[i] >= 0) continue;
    report.add(entry(name, i), std::to_string(lengths[i]), length_text(r));
  }
}

void counts_this_steps_tokens(const UnifiedCall& call, const Truth& truth, Report& report) {
  counts_this_steps_tokens("seqused_k", call.seqused_k, truth, report);
}

void counts_this_steps_tokens(const VllmCpuCall& call, const Truth& truth, Report& report) {
  counts_this_steps_tokens("seq_lens", call.seq_lens, truth, report);
}

std::int64_t largest_storage(const UnifiedCall& call) {
  return std::max(call.k.storage_bytes, call.v.storage_bytes);
}

bool narrow_past_2_gib(const UnifiedCall& call) {
  return call.seqused_k.meta.dtype != Dtype::int64 && largest_storage(call) >= two_gib;
}

void is_int64_past_2_gib(const UnifiedCall& call, const Truth& truth, Report& report) {
  if (!narrow_past_2_gib(call)) return;
  report.add(truth.capabilities.length_dtype_reaches_offsets ? Severity::wrong : Severity::policy,
             "seqused_k.dtype", std::string(name(call.seqused_k.meta.dtype)),
             "int64: the K/V storage is " + std::to_string(largest_storage(call)) +
                 " bytes, 2^31 or more");
}

void is_int64(const UnifiedCall& call, const Truth&, Report& report) {
  if (call.seqused_k.meta.dtype == Dtype::int64 || narrow_past_2_gib(call)) return;
  report.add("seqused_k.dtype", std::string(name(call.seqused_k.meta.dtype)),
             "int64, as the other call sites pass");
}

std::int64_t longest_keys(const Problem& problem) {
  std::int64_t longest = 0;
  for (const Request& r : problem.requests) {
    if (r.live && r.new_tokens > 0) longest = std::max(longest, r.kv_len());
  }
  return longest;
}

void max_seqlen_k_covers_the_longest(const BatchPrefillCall& call, const Truth& truth,
                                     Report& report) {
  const std::int64_t longest = longest_keys(truth.problem);
  if (call.max_seqlen_k >= longest) return;
  // 0 skips the kernel, and a window of max_seqlen_k keys or more is dropped; without a window
  // nothing else reads it.
  const bool window_lost =
      call.window_size[0] >= call.max_seqlen_k && call.window_size[0] < longest - 1;
  report.add(call.max_seqlen_k <= 0 || window_lost ? Severity::wrong : Severity::policy,
             "max_seqlen_k", std::to_string(call.max_seqlen_k),
             std::to_string(longest) + " or more, the longest request's keys");
}

void max_seqlen_k_covers_the_longest(const UnifiedCall& call, const Truth& truth, Report& report) {
  const std::int64_t longest = longest_keys(truth.problem);
  if (call.max_seqlen_k >= longest) return;
  report.add(truth.capabilities.max_len_is_exact ? Severity::wrong : Severity::policy,
             "max_seqlen_k", std::to_string(call.max_seqlen_k),
             std::to_string(longest) + " or more, the longest request's keys");
}

constexpr Rule rules[] = {
    {.id = "seqused_k.counts_this_steps_tokens",
     .says =
         "seqused_k[i] (seq_lens[i]) is the committed length plus this step's tokens of request i",
     .why = "the kernel aligns the last row to the last key: short by n, every row loses its n "
            "newest keys and acceptance collapses; long by n, rows read unwritten slots",
     .source = "sgl-project/sglang#31221; sgl-project/sglang#26512; sgl-project/sglang#34647",
     .unified = counts_this_steps_tokens,
     .vllm_cpu = counts_this_steps_tokens},
    {.id = "seqused_k.is_int64_past_2_gib",
     .says = "seqused_k is int64 when a layer's K or V storage is 2^31 bytes or more",
     .why = "a kernel that computes byte offsets in its dtype wraps and returns NaN; policy for "
            "kernels that widen page ids and strides on their own",
     .source = "sgl-project/sglang#36541",
     .unified = is_int64_past_2_gib},
    {.id = "seqused_k.is_int64",
     .says = "seqused_k is int64 at every call site",
     .why = "int32 is right while the storage is small, and the call site that passes it is the "
            "one that breaks when the cache grows",
     .source = "sgl-project/sglang#36541",
     .severity = Severity::policy,
     .unified = is_int64},
    {.id = "max_seqlen_k.covers_the_longest_request",
     .says = "max_seqlen_k is at least the longest request's KV length",
     .why = "unified only tunes with it; kernels that bound their loop or their partitions by it "
            "drop the newest keys; batch_prefill drops the window or, at 0, the whole call",
     .source = "vllm-project/vllm#32312; vllm-project/vllm#53384",
     .unified = max_seqlen_k_covers_the_longest,
     .batch_prefill = max_seqlen_k_covers_the_longest},
};

}  // namespace

std::span<const Rule> seqused_k_rules() { return rules; }

}  // namespace attest
