#include <algorithm>

#include "property_tests/fault_edits.hpp"

namespace attest {
namespace {

/// The array that holds total KV lengths, in the signatures that have one.
IntArray* lengths_of(Call& call) {
  if (auto* unified = std::get_if<UnifiedCall>(&call)) return &unified->seqused_k;
  if (auto* extend = std::get_if<ExtendCall>(&call)) return &extend->seq_lens;
  if (auto* decode = std::get_if<DecodeCall>(&call)) return &decode->seq_lens;
  if (auto* vllm = std::get_if<VllmCpuCall>(&call)) return &vllm->seq_lens;
  return nullptr;
}

/// Adds delta(request) to the length of each live request.
template <class Delta>
bool change_lengths(const Problem& problem, IntArray* lengths, Delta&& delta) {
  if (lengths == nullptr) return false;
  bool changed = false;
  const std::size_t count = std::min(problem.requests.size(), lengths->values.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!problem.requests[i].live) continue;
    const std::int64_t by = delta(problem.requests[i]);
    lengths->values[i] += by;
    changed = changed || by != 0;
  }
  return changed;
}

bool shift_seqused_k(const Problem& problem, Call& call, std::int64_t by) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr) return false;
  return change_lengths(problem, &unified->seqused_k, [by](const Request&) { return by; });
}

bool shift_seq_lens(const Problem& problem, Call& call, std::int64_t by) {
  if (std::holds_alternative<UnifiedCall>(call)) return false;
  return change_lengths(problem, lengths_of(call), [by](const Request&) { return by; });
}

}  // namespace

bool seqused_k_int32(const Problem&, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || unified->seqused_k.meta.dtype == Dtype::int32) return false;
  unified->seqused_k.meta.dtype = Dtype::int32;
  unified->seqused_k.meta.storage_bytes /= 2;
  return true;
}

bool seqused_k_short_by_one(const Problem& problem, const SlotMap&, Call& call) {
  return shift_seqused_k(problem, call, -1);
}

bool seqused_k_long_by_one(const Problem& problem, const SlotMap&, Call& call) {
  return shift_seqused_k(problem, call, 1);
}

bool draft_extend_counts_the_prefix_only(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || problem.mode != Mode::draft_extend_v2) return false;
  return change_lengths(problem, &unified->seqused_k,
                        [](const Request& r) { return -r.new_tokens; });
}

bool seq_lens_short_by_one(const Problem& problem, const SlotMap&, Call& call) {
  return shift_seq_lens(problem, call, -1);
}

bool seq_lens_long_by_one(const Problem& problem, const SlotMap&, Call& call) {
  return shift_seq_lens(problem, call, 1);
}

bool seqused_k_from_max_seqlen_q(const Problem& problem, const SlotMap&, Call& call) {
  auto* unified = std::get_if<UnifiedCall>(&call);
  if (unified == nullptr || problem.mode != Mode::target_verify) return false;
  const std::int64_t longest = problem.max_new_tokens();
  return change_lengths(problem, &unified->seqused_k,
                        [longest](const Request& r) { return longest - r.new_tokens; });
}

bool prefix_short_by_draft_count(const Problem& problem, const SlotMap&, Call& call) {
  const bool serves = std::holds_alternative<UnifiedCall>(call) ||
                      std::holds_alternative<ExtendCall>(call) ||
                      std::holds_alternative<VllmCpuCall>(call);
  if (!serves || problem.mode != Mode::target_verify) return false;
  return change_lengths(problem, lengths_of(call), [](const Request& r) { return -r.new_tokens; });
}

bool draft_decode_without_step(const Problem& problem, const SlotMap&, Call& call) {
  if (problem.mode != Mode::draft_decode) return false;
  const std::int64_t lost = problem.draft_step + 1;
  return change_lengths(problem, lengths_of(call), [lost](const Request&) { return -lost; });
}

bool rejected_drafts_still_counted(const Problem& problem, const SlotMap&, Call& call) {
  if (problem.mode != Mode::draft_decode) return false;
  return change_lengths(problem, lengths_of(call), [](const Request&) { return 2; });
}

}  // namespace attest
