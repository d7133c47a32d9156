#include "contracts/rules/live_requests.hpp"

#include <string>

namespace attest {
namespace {

/// Modes whose kernels give every request of the batch a row.
bool each_has_a_row(Mode mode) {
  return mode == Mode::decode || mode == Mode::idle || mode == Mode::draft_decode ||
         mode == Mode::target_verify;
}

std::string keys_text(const Request& r) {
  return std::to_string(r.kv_len()) + " keys = " + std::to_string(r.committed) + " committed + " +
         std::to_string(r.new_tokens) + " new";
}

template <class CallType>
void have_keys(const CallType&, const Truth& truth, Report& report) {
  const Problem& p = truth.problem;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    const Request& r = p.requests[i];
    if (!r.live) continue;
    const std::string where = "request " + std::to_string(i);
    if (r.kv_len() == 0) {
      report.add(where, keys_text(r), "1 or more: a request without keys is a padded row");
    } else if (r.new_tokens == 0 && each_has_a_row(p.mode)) {
      report.add(Severity::policy, where, "0 new tokens in " + std::string(name(p.mode)),
                 "1 or more: this step has a row of every live request");
    }
  }
}

constexpr Rule rules[] = {
    {.id = "live_requests.have_keys",
     .says = "a live request has a key; policy: in decode, draft decode and verification a new "
             "token too",
     .why = "a row over no keys divides by an empty sum, NaN in one kernel and 0 in another; a "
            "request without a row is computed where row i is request i, and nobody asked",
     .source = "huggingface/transformers#46765; sgl-project/sglang sgl-kernel/csrc/cpu/decode.cpp: "
               "idle batches are padded with 1",
     .severity = Severity::fault,
     .unified = have_keys<UnifiedCall>,
     .extend = have_keys<ExtendCall>,
     .decode = have_keys<DecodeCall>,
     .mla_decode = have_keys<MlaDecodeCall>,
     .batch_prefill = have_keys<BatchPrefillCall>,
     .paged_ragged = have_keys<PagedRaggedCall>,
     .legacy_extend = have_keys<LegacyExtendCall>,
     .vllm_cpu = have_keys<VllmCpuCall>},
};

}  // namespace

std::span<const Rule> live_requests_rules() { return rules; }

}  // namespace attest
