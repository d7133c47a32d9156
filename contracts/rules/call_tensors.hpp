#pragma once

#include <string_view>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// What a call's tensor is to the kernel.
enum class TensorRole {
  query,
  key,      ///< K of the pool or of the new tokens; MLA's latent rows
  value,    ///< V likewise
  output,   ///< written, scratch included
  sinks,    ///< one logit per query head
  feature,  ///< scales, biases, masks
  index,    ///< offsets, lengths, slots
};

struct NamedTensor {
  std::string_view name;
  TensorRole role;
  const TensorMeta* meta;
};

/// The tensors and arrays that a call has, in its own order.
std::vector<NamedTensor> tensors_of(const UnifiedCall& call);
std::vector<NamedTensor> tensors_of(const ExtendCall& call);
std::vector<NamedTensor> tensors_of(const DecodeCall& call);
std::vector<NamedTensor> tensors_of(const MlaDecodeCall& call);
std::vector<NamedTensor> tensors_of(const BatchPrefillCall& call);
std::vector<NamedTensor> tensors_of(const PagedRaggedCall& call);
std::vector<NamedTensor> tensors_of(const LegacyExtendCall& call);
std::vector<NamedTensor> tensors_of(const VllmCpuCall& call);

}  // namespace attest
