#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/wrap_model.hpp"
#include "contracts/address_interval.hpp"

namespace attest {

/// An offset that loses its upper bits, put into the scalar, the AMX and the HIP kernel: the
/// backends are "faulty-wrap-<id>.<signature>@<engine>". Small pools never show one; each has the
/// boundary past which every kernel with it must be caught.
struct WrapFault {
  std::string_view id;  ///< "bytes_int32"
  WrapModel model;
  Boundary boundary;
  std::string_view says;  ///< what the kernel does, one clause
};

/// Every one, in the order of the table in docs/large_kv.md.
std::span<const WrapFault> all_wrap_faults();

/// The fault of one of the backends below; nullptr for any other.
const WrapFault* wrap_fault_of(const Backend& backend);

/// One backend for each fault, kernel, signature and engine. The scalar kernel addresses heads from
/// head 0, so it has no head_sum. Device engines have those of the HIP kernel.
std::span<const Backend* const> wrap_fault_backends();

}  // namespace attest
