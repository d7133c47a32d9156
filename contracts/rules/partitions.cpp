#include "contracts/rules/partitions.hpp"

#include <algorithm>
#include <string>

#include "contracts/rules/finding_text.hpp"
#include "contracts/rules/row_judgement.hpp"
#include "contracts/signatures.hpp"

namespace attest {
namespace {

void cover_the_longest(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  std::int64_t longest = 0;
  for (const Request& r : truth.problem.requests) {
    if (length_counts(r, truth.problem)) longest = std::max(longest, r.kv_len());
  }
  if (call.partition_size < 1) {
    report.add(Severity::fault, "partition_size", std::to_string(call.partition_size),
               "1 or more keys");
    return;
  }
  const std::int64_t needed =
      longest / call.partition_size + (longest % call.partition_size > 0 ? 1 : 0);
  if (call.max_num_partitions >= needed) return;
  report.add("max_num_partitions", std::to_string(call.max_num_partitions),
             std::to_string(needed) + ", the longest request's " + std::to_string(longest) +
                 " keys in partitions of " + std::to_string(call.partition_size));
}

std::int64_t bytes_of(const TensorMeta& tensor) {
  std::int64_t bytes = static_cast<std::int64_t>(size_bytes(tensor.dtype));
  for (const std::int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return 0;
  }
  return bytes;
}

void workspace_holds_them(const PagedRaggedCall& call, const Truth&, Report& report) {
  const auto needed = [&](std::int64_t element_bytes) {
    return paged_ragged_workspace(call.query.size(0), call.query.size(1),
                                  std::max<std::int64_t>(0, call.max_num_partitions),
                                  call.query.size(2), element_bytes);
  };
  const std::int64_t got = bytes_of(call.workspace_buffer);
  const std::int64_t stored = needed(static_cast<std::int64_t>(size_bytes(call.out.dtype)));
  const std::int64_t sized = needed(4);
  if (got >= sized) return;
  const std::string text = std::to_string(call.query.size(0)) + " rows of " +
                           std::to_string(call.max_num_partitions) + " partitions";
  if (got < stored) {
    report.add(Severity::fault, "workspace_buffer", std::to_string(got) + " bytes",
               std::to_string(stored) + " for " + text);
  } else {
    report.add("workspace_buffer", std::to_string(got) + " bytes",
               std::to_string(sized) + " for " + text + " by the framework's own formula");
  }
}

void one_row_a_request(const PagedRaggedCall& call, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    if (!counts(p.requests[i], p) || p.requests[i].new_tokens == 1) continue;
    report.add("request " + std::to_string(i),
               std::to_string(p.requests[i].new_tokens) + " new tokens",
               "1: row i of the query is request i");
  }
  const auto batch = static_cast<std::int64_t>(p.requests.size());
  const std::int64_t offsets = call.kv_indptr.size(0) - 1;
  if (call.query.size(0) > offsets) {
    report.add(Severity::fault, "query.shape[0]", std::to_string(call.query.size(0)),
               std::to_string(batch) + ": kv_indptr has no entries for more rows");
  }
}

void mtp_is_one(const PagedRaggedCall& call, const Truth&, Report& report) {
  if (call.mtp == 1) return;
  report.add("mtp", std::to_string(call.mtp), "1: its mask over several rows is no causal order");
}

void layout_is_the_pools(const PagedRaggedCall& call, const Truth&, Report& report) {
  if (call.kv_cache_layout == "NHD") return;
  report.add("kv_cache_layout", call.kv_cache_layout, "NHD, the pool has tokens before heads");
}

void dtype_word_is_the_caches(const PagedRaggedCall& call, const Truth&, Report& report) {
  const bool fp8 = is_fp8(call.key_cache.dtype);
  const bool says_fp8 = call.kv_cache_dtype == "fp8" || call.kv_cache_dtype == "fp8_e4m3";
  if (fp8 ? says_fp8 : call.kv_cache_dtype == "auto") return;
  report.add("kv_cache_dtype", call.kv_cache_dtype,
             fp8 ? "fp8, the cache is " + std::string(name(call.key_cache.dtype))
                 : "auto, the cache is " + std::string(name(call.key_cache.dtype)));
}

void head_size_has_a_kernel(const PagedRaggedCall& call, const Truth&, Report& report) {
  const std::int64_t dim = call.query.size(2);
  if (dim >= 64 && dim % 16 == 0 && dim == call.value_cache.size(3)) return;
  report.add("query.shape[2]", std::to_string(dim),
             "64 or more in steps of 16, and the value cache's " +
                 std::to_string(call.value_cache.size(3)));
}

constexpr Rule rules[] = {
    {.id = "max_num_partitions.cover_the_longest_request",
     .says = "max_num_partitions * partition_size is at least the longest request's KV length",
     .why = "the grid has one block per partition: keys past the last one are never read, and the "
            "reduction takes their place from scratch memory",
     .source = "ROCm/aiter csrc/cpp_itfs/pa/pa_ragged.cpp.jinja; InferenceMAX/InferenceX#2466",
     .paged_ragged = cover_the_longest},
    {.id = "workspace_buffer.holds_every_partition",
     .says = "workspace_buffer holds two f32 and a partial result per row, head and partition",
     .why = "partial results past its end overwrite whatever lies there; policy where only the "
            "framework's own formula, which counts f32 results, asks for more",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py: "
               "workspace_buffer; ROCm/aiter csrc/cpp_itfs/pa/pa_ragged.cpp.jinja",
     .severity = Severity::policy,
     .paged_ragged = workspace_holds_them},
    {.id = "query.is_one_row_a_request",
     .says = "every request has one new token and one row of the query, with offsets of its own",
     .why = "row i is request i: a second token has no row, a row too many reads offsets past the "
            "array",
     .source = "ROCm/aiter csrc/cpp_itfs/pa/pa_ragged.cpp.jinja: num_seqs = query.size(0)",
     .paged_ragged = one_row_a_request},
    {.id = "mtp.is_one",
     .says = "mtp is 1",
     .why = "for several rows a request the kernel's limit is length * (row + 1), which is not the "
            "causal order of drafts",
     .source = "ROCm/aiter csrc/cpp_itfs/pa/pa_kernels.cuh: mtp_idx",
     .paged_ragged = mtp_is_one},
    {.id = "kv_cache_layout.is_the_pools",
     .says = "kv_cache_layout is NHD for a pool of (slot, head, element)",
     .why = "the two words swap the strides of tokens and heads",
     .source = "ROCm/aiter csrc/cpp_itfs/pa/pa_ragged.cpp.jinja: kv_cache_layout",
     .paged_ragged = layout_is_the_pools},
    {.id = "kv_cache_dtype.is_the_caches",
     .says = "kv_cache_dtype is auto for a cache of q's type and fp8 for an fp8 one",
     .why = "the word, not the tensor, picks the element type the kernel is compiled for",
     .source = "ROCm/aiter csrc/cpp_itfs/pa/pa_ragged.cpp.jinja: kv_cache_dtype",
     .paged_ragged = dtype_word_is_the_caches},
    {.id = "head_dim.fits_the_paged_kernels",
     .says = "head sizes are one, at least 64, and a multiple of 16",
     .why = "with fewer than 64 the second product is skipped and the output is zero",
     .source = "vllm-project/vllm#34570",
     .paged_ragged = head_size_has_a_kernel},
};

}  // namespace

std::span<const Rule> partitions_rules() { return rules; }

}  // namespace attest
