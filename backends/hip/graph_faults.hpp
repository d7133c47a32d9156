#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/backend.hpp"
#include "backends/hip/graph_plan.hpp"
#include "backends/hip/kernels/planted_fault.hpp"

namespace attest::hip {

/// A mistake around graphs, on the host engine, bf16 only. None shows without a graph, so these are
/// no backends of a run; the graph relations must tell each of them.
struct GraphFaultRow {
  std::string_view id;  ///< the backend is "faulty-graph_<id>.unified@host"
  GraphFault fault = GraphFault::none;
  PlantedFault kernel = PlantedFault::none;  ///< what the kernel makes of a frozen scalar
  int splits = 3;
  std::string_view says;    ///< what the launcher does, one clause
  std::string_view source;  ///< public thread, or "modelled"
};

/// Every fault, in the order of the table in docs/hip.md.
std::span<const GraphFaultRow> all_graph_faults();

std::unique_ptr<Backend> graph_fault_backend(const GraphFaultRow& row);

}  // namespace attest::hip
