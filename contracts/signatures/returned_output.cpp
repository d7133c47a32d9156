#include "contracts/signatures/returned_output.hpp"

namespace attest {

std::optional<TensorMeta> returned_output(const Call& call) {
  const auto* const prefill = std::get_if<BatchPrefillCall>(&call);
  if (prefill == nullptr) return std::nullopt;
  const TensorMeta& q = prefill->q;
  return contiguous(is_fp8(q.dtype) ? Dtype::bf16 : q.dtype,
                    {q.size(0), q.size(1), prefill->v.size(2)});
}

}  // namespace attest
