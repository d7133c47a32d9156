#pragma once

#include <optional>
#include <string>
#include <variant>

#include "contracts/attended.hpp"
#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// A signature cannot express this Problem: "extend takes no window together with a draft tree".
struct Unsupported {
  std::string reason;
};

template <class CallType>
using Lowered = std::variant<CallType, Unsupported>;

/// lower: the call a correct framework makes for this Problem, in every mode the signature serves.
/// An executable specification: docs/contracts.md states it in words. \pre !problem_error(problem)
Lowered<UnifiedCall> lower_unified(const Problem& problem, const SlotMap& slots);
Lowered<ExtendCall> lower_extend(const Problem& problem, const SlotMap& slots);
Lowered<DecodeCall> lower_decode(const Problem& problem, const SlotMap& slots);
Lowered<MlaDecodeCall> lower_mla_decode(const Problem& problem, const SlotMap& slots);
Lowered<BatchPrefillCall> lower_batch_prefill(const Problem& problem, const SlotMap& slots);
Lowered<PagedRaggedCall> lower_paged_ragged(const Problem& problem, const SlotMap& slots);
Lowered<LegacyExtendCall> lower_legacy_extend(const Problem& problem, const SlotMap& slots);
Lowered<VllmCpuCall> lower_vllm_cpu(const Problem& problem, const SlotMap& slots);

/// The one of `signature`, as the variant.
Lowered<Call> lower(Signature signature, const Problem& problem, const SlotMap& slots);

/// Bytes of scratch a paged_ragged call needs for `rows` query rows: two f32 and a partial result
/// of `element_bytes` elements for every row, head and partition. AITER's callers size it with 4,
/// its kernel stores 2. Saturates.
std::int64_t paged_ragged_workspace(std::int64_t rows, std::int64_t heads, std::int64_t partitions,
                                    std::int64_t head_dim, std::int64_t element_bytes);

/// What a conforming kernel would compute from the call alone; contents are looked up in the
/// Problem (whose slot holds which content, which row of k_extend is which token). Slots that hold
/// nothing become runs of `unknown_sequence`; accesses outside an array become runs of it at slot
/// -1. Rows the call does not cover expect `untouched`. Never throws and never reads out of bounds
/// on a bad call. read(lower(p)) == attended(p) for every p that lower accepts.
Attended read(const UnifiedCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const ExtendCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const DecodeCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const MlaDecodeCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const BatchPrefillCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const PagedRaggedCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const LegacyExtendCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const VllmCpuCall& call, const Problem& problem, const SlotMap& slots);
Attended read(const Call& call, const Problem& problem, const SlotMap& slots);

}  // namespace attest
