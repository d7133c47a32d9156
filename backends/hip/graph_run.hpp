#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/hip/engine.hpp"
#include "backends/hip/graph_plan.hpp"
#include "backends/hip/kernels/paged_launch.hpp"

namespace attest::hip {

/// Which requests have which rows, keys and pages: an integer array in the engine's memory.
struct MetadataArray {
  enum class Kind { first_rows, lengths, table, page_starts, last_page_lens };
  Kind kind = Kind::lengths;
  void* memory = nullptr;
  bool wide = false;                 ///< int64
  std::vector<std::int64_t> values;  ///< of the call
};

/// The bytes of integers as int32 or int64, and one more, so that an empty array has an address.
std::vector<std::byte> bytes_of_integers(const std::vector<std::int64_t>& values, bool wide);

/// One call on its way through a graph.
struct GraphCall {
  LaunchSession& session;
  PagedArgs args;  ///< complete, as an eager launch would take them
  const std::vector<MetadataArray>& arrays;
  PagedLaunch launch = nullptr;
  LengthsLaunch lengths = nullptr;
  int row_groups = 1;
  std::vector<bool> live;  ///< by request: not a padded lane
};

/// Launches without a graph.
void run_eagerly(const GraphCall& call, GraphFault fault);

/// Captures with the lengths the plan says, puts the call's own arrays in place and replays: how a
/// framework runs a step. \returns damage besides what the session finds.
std::vector<std::string> run_in_graph(const GraphCall& call, const GraphPlan& plan,
                                      GraphFault fault);

}  // namespace attest::hip
