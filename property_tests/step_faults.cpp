#include "property_tests/step_faults.hpp"

#include <array>
#include <cstddef>
#include <variant>

#include "contracts/signatures.hpp"

namespace attest {
namespace {

/// A graph is captured with one batch and replayed with another: block table, pages and committed
/// lengths are copied into its buffers, what follows from the verify length is not.
bool lengths_of_the_captured_step(const Problem& before, const Problem& now, Call& call) {
  auto* const unified = std::get_if<UnifiedCall>(&call);
  const std::size_t batch = now.requests.size();
  if (unified == nullptr || before.requests.size() != batch) return false;
  const auto lowered = lower_unified(before, make_slot_map(before));
  const auto* const captured = std::get_if<UnifiedCall>(&lowered);
  if (captured == nullptr || captured->cu_seqlens_q.values == unified->cu_seqlens_q.values) {
    return false;
  }
  unified->cu_seqlens_q.values = captured->cu_seqlens_q.values;
  unified->max_seqlen_q = captured->max_seqlen_q;
  for (std::size_t i = 0; i < batch; ++i) {
    unified->seqused_k.values[i] = now.requests[i].committed + before.requests[i].new_tokens;
  }
  return true;
}

/// A mask that stays: the call before verified draft trees, this one verifies others, or chains.
bool mask_of_the_step_before(const Problem& before, const Problem& now, Call& call) {
  auto* const extend = std::get_if<ExtendCall>(&call);
  if (extend == nullptr || before.requests.size() != now.requests.size()) return false;
  const auto lowered = lower_extend(before, make_slot_map(before));
  const auto* const earlier = std::get_if<ExtendCall>(&lowered);
  if (earlier == nullptr || !earlier->tree_mask) return false;
  if (extend->tree_mask && extend->tree_mask->values == earlier->tree_mask->values) return false;
  extend->tree_mask = earlier->tree_mask;
  return true;
}

constexpr std::array faults = {
    StepFault{"lengths_of_the_captured_step",
              "a graph keeps the query offsets and verify lengths it was captured with",
              "sgl-project/sglang#31221", lengths_of_the_captured_step},
    StepFault{"mask_of_the_step_before",
              "the mask of the step before stays when this one has another",
              "flashinfer-ai/flashinfer#1028", mask_of_the_step_before},
};

}  // namespace

std::span<const StepFault> all_step_faults() { return faults; }

const StepFault* find_step_fault(std::string_view id) {
  for (const StepFault& fault : faults) {
    if (fault.id == id) return &fault;
  }
  return nullptr;
}

}  // namespace attest
