#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest::hip {

/// What a graph was captured with before the call at hand is replayed through it. A capture runs no
/// kernel: what it keeps are the launches, their pointers and their scalars.
enum class Captured {
  same,    ///< this very call
  short_,  ///< a batch of one-token requests without a prefix, as frameworks capture
  long_,   ///< requests that fill the block table
};

/// RunOptions::graph in parts.
struct GraphPlan {
  Captured captured = Captured::same;
  /// Between capture and replay the same kernel runs eagerly over the longest lengths, with memory
  /// of its own.
  bool eager_between = false;
  /// The graph computes the lengths itself from the committed ones; otherwise the host writes them
  /// before the replay.
  bool lengths_inside = false;
};

/// "same", "short" or "long", then any of ",eager" and ",inside".
/// \throws std::invalid_argument naming the words there are.
GraphPlan graph_plan(std::string_view text);

/// Mistakes of the code around a graph. Each is right without a graph, and in one that replays the
/// very call it was captured with.
enum class GraphFault {
  none,
  lengths_added_on_the_host,
  maximum_of_capture,
  partitions_of_capture,
  window_of_capture,
  table_laid_out_by_the_batch,
  padding_lengths_stale,
  padding_offsets_stale,
  padding_takes_lane_0,
  workspace_given_back,
};

}  // namespace attest::hip
