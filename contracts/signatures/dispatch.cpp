#include <utility>

#include "contracts/signatures.hpp"

namespace attest {
namespace {

template <class CallType>
Lowered<Call> as_call(Lowered<CallType> lowered) {
  if (auto* refused = std::get_if<Unsupported>(&lowered)) return std::move(*refused);
  return Call(std::get<CallType>(std::move(lowered)));
}

}  // namespace

Lowered<Call> lower(Signature signature, const Problem& problem, const SlotMap& slots) {
  switch (signature) {
    case Signature::unified:
      return as_call(lower_unified(problem, slots));
    case Signature::extend:
      return as_call(lower_extend(problem, slots));
    case Signature::decode:
      return as_call(lower_decode(problem, slots));
    case Signature::mla_decode:
      return as_call(lower_mla_decode(problem, slots));
    case Signature::batch_prefill:
      return as_call(lower_batch_prefill(problem, slots));
    case Signature::paged_ragged:
      return as_call(lower_paged_ragged(problem, slots));
    case Signature::legacy_extend:
      return as_call(lower_legacy_extend(problem, slots));
    case Signature::vllm_cpu:
      return as_call(lower_vllm_cpu(problem, slots));
  }
  return Unsupported{"there is no such signature"};
}

Attended read(const Call& call, const Problem& problem, const SlotMap& slots) {
  return std::visit([&](const auto& c) { return read(c, problem, slots); }, call);
}

}  // namespace attest
