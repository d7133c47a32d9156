#include "contracts/rules/prefill.hpp"

#include <algorithm>
#include <string>

#include "contracts/rules/finding_text.hpp"

namespace attest {
namespace {

constexpr std::int64_t loaded_past_the_end = 128;  // entries: the widest key tile
constexpr std::int64_t largest_head_dim = 256;
constexpr std::int64_t head_bytes = 16;  // of one vector load

void reach_past_the_last_token(const BatchPrefillCall& call, const Truth& truth, Report& report) {
  if (!recorded(call.kv_indptr, "kv_indptr", report)) return;
  const std::int64_t used = call.kv_indptr[truth.problem.requests.size()];
  const std::int64_t entries = call.kv_page_indices.size(0);
  if (used < 0 || used > entries) return;  // judged with the offsets
  if (entries - used < loaded_past_the_end) {
    report.add("kv_page_indices.shape[0]", std::to_string(entries),
               std::to_string(used) + " = kv_indptr[-1], and 128 more that a tile loads");
    return;
  }
  if (!recorded(call.kv_page_indices, "kv_page_indices", report)) return;
  for (std::int64_t j = used; j < used + loaded_past_the_end; ++j) {
    const std::int64_t slot = call.kv_page_indices[static_cast<std::size_t>(j)];
    if (slot >= 0 && slot < call.k.size(0)) continue;
    report.add(entry("kv_page_indices", j), std::to_string(slot),
               "in [0, " + std::to_string(call.k.size(0)) + "), though no row sees it");
  }
}

void q_k_and_v_are_one_type(const BatchPrefillCall& call, const Truth&, Report& report) {
  if (call.q.dtype == call.k.dtype && call.k.dtype == call.v.dtype) return;
  report.add("k.dtype", std::string(name(call.k.dtype)),
             std::string(name(call.q.dtype)) + ", one type for q, k and v (v has " +
                 std::string(name(call.v.dtype)) + ")");
}

void head_sizes_fit(const BatchPrefillCall& call, const Truth&, Report& report) {
  const auto expect = [&](std::string_view tensor, const TensorMeta& meta) {
    const std::int64_t dim = meta.size(2);
    const std::int64_t step =
        head_bytes / std::max<std::int64_t>(1, static_cast<std::int64_t>(size_bytes(meta.dtype)));
    if (dim <= largest_head_dim && dim % std::max<std::int64_t>(1, step) == 0) return;
    report.add(std::string(tensor) + ".shape[2]", std::to_string(dim),
               "at most 256 and a multiple of 16 bytes");
  };
  expect("q", call.q);
  expect("v", call.v);
}

constexpr Rule rules[] = {
    {.id = "kv_page_indices.reach_past_the_last_token",
     .says = "kv_page_indices has 128 more existing slots behind the last request's last key",
     .why = "the prefill kernel loads a whole tile of entries and the rows behind them before it "
            "masks: a short array is read past its end, a stray entry is a stray address",
     .source = "sgl-project/sglang python/sglang/srt/layers/attention/aiter_backend.py: kv_indices "
               "is padded by 256 entries",
     .severity = Severity::fault,
     .batch_prefill = reach_past_the_last_token},
    {.id = "dtypes.q_k_and_v_are_one",
     .says = "q, k and v of a batch_prefill call have one element type",
     .why = "the host code refuses other combinations: a 16-bit q over an fp8 cache must be cast "
            "first",
     .source = "ROCm/aiter csrc/py_itfs_ck/mha_batch_prefill_kernels.cu",
     .severity = Severity::fault,
     .batch_prefill = q_k_and_v_are_one_type},
    {.id = "head_dim.fits_the_prefill_kernels",
     .says = "head sizes of a batch_prefill call are multiples of 16 bytes up to 256 elements",
     .why = "no kernel is instantiated for others, the host code refuses them",
     .source = "ROCm/aiter csrc/py_itfs_ck/mha_batch_prefill_kernels.cu",
     .severity = Severity::fault,
     .batch_prefill = head_sizes_fit},
};

}  // namespace

std::span<const Rule> prefill_rules() { return rules; }

}  // namespace attest
