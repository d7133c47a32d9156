#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/hip/kernels/planted_fault.hpp"

namespace attest::hip {

/// A mistake put into our paged attention kernel: the GPU half of the mutants, run on the host
/// engine, bf16 only.
struct PlantedFaultRow {
  std::string_view id;  ///< the backend is "faulty-hip_<id>.unified@host"
  PlantedFault fault = PlantedFault::none;
  std::string_view says;    ///< what the kernel does, one clause
  std::string_view shows;   ///< which calls can show it
  std::string_view source;  ///< public thread, or "modelled"
  /// Whether generated cases show it. The others need calls that no correct caller makes, or
  /// logits that the recipes do not have; planted_faults_test.cpp makes them.
  bool generated = true;
};

/// Every fault, in the order of the table in docs/hip_kernels.md.
std::span<const PlantedFaultRow> all_planted_faults();

/// The backend of one row, or of the honest kernel in the same shape (PlantedFault::none).
std::unique_ptr<Backend> faulty_hip_backend(const PlantedFaultRow& row);

/// Those that generated cases show.
std::vector<std::unique_ptr<Backend>> faulty_hip_backends();

}  // namespace attest::hip
