#include "contracts/signatures/returned_output.hpp"

namespace attest {

TensorMeta output_of(const BatchPrefillCall& call) {
  const TensorMeta& q = call.q;
  return contiguous(is_fp8(q.dtype) ? Dtype::bf16 : q.dtype,
                    {q.size(0), q.size(1), call.v.size(2)});
}

std::optional<TensorMeta> returned_output(const Call& call) {
  const auto* const prefill = std::get_if<BatchPrefillCall>(&call);
  return prefill == nullptr ? std::nullopt : std::optional(output_of(*prefill));
}

}  // namespace attest
