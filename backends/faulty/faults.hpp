#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "backends/scalar/fault.hpp"
#include "backends/scalar/scalar_backend.hpp"

namespace attest {

/// A kernel's mistake, put into the scalar kernel: the kernel half of the mutants.
struct KernelFault {
  std::string_view id;  ///< "causal_one_too_long"; the backend is "faulty-<id>.<signature>@cpu"
  Fault fault = Fault::none;
  std::string_view says;    ///< what the kernel does, one clause
  std::string_view shows;   ///< which calls can show it
  std::string_view source;  ///< public thread, or "modelled"
  std::vector<Signature> signatures;
  bool large_pool = false;  ///< shows only where pages in use lie past 2 GiB of one pool
};

/// The faults of reported_faults.cpp, after them those of later_faults.cpp, and the second batch of
/// such, which all_kernel_faults() ends with.
std::vector<KernelFault> reported_faults();
std::vector<KernelFault> later_faults();
std::vector<KernelFault> second_address_faults();
std::vector<KernelFault> second_mask_faults();
std::vector<KernelFault> second_softmax_faults();

/// Every fault, in the order of the table in docs/backends.md.
std::span<const KernelFault> all_kernel_faults();
/// nullptr when there is none of that id.
const KernelFault* find_kernel_fault(std::string_view id);

/// One backend for each fault and signature of the table.
std::span<const ScalarBackend> faulty_backends();

}  // namespace attest
