#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backends/amx/defect.hpp"
#include "backends/backend.hpp"

namespace attest {

/// A defect that was measured in SGLang's CPU kernels, put into the AMX kernel: the other half of
/// the kernel faults (faults.hpp has those of the scalar kernel).
struct AmxFault {
  std::string_view id;  ///< the backends are "faulty-<id>.<signature>@native" and "@patch"
  amx::Defect defect = amx::Defect::none;
  std::string_view says;   ///< what the kernel does, one clause
  std::string_view shows;  ///< which calls show it
  std::string_view
      rule;  ///< the contract rule that rejects those calls; empty = no metadata shows it
  std::string_view source;  ///< where it was seen
  std::vector<Signature> signatures;
};

/// Every one, in the order of the table in docs/amx.md.
std::span<const AmxFault> all_amx_faults();

/// One backend for each fault, signature and engine.
std::span<const Backend* const> faulty_amx_backends();

}  // namespace attest
