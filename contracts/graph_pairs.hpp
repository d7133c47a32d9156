#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "contracts/rule.hpp"

namespace attest {

struct SiteCall;

/// One argument that a replay says otherwise than its capture.
struct GraphDifference {
  bool is_tensor = false;  ///< an array counts as one; else a scalar
  Severity severity = Severity::wrong;
  std::string where, captured, replayed;
};

/// A replay, and the capture of the graph that it is taken to be a replay of.
struct GraphPair {
  const SiteCall* replay = nullptr;
  const SiteCall* capture = nullptr;  ///< nullptr: none of its kernel, mode, server and batch size
  std::vector<GraphDifference> differences;
};

/// Every replay among the calls of one layer, in their order. A capture may be its graph's where
/// kernel, mode, pool and the numbers of requests and rows are the same; of several, the one it
/// differs from least. Captures that say the same count as one and are found by what they say, so
/// the cost is that of the calls, not of their square; *stop ends it early.
/// \param compared  counts the pairs of calls that were held against one another
std::vector<GraphPair> graph_pairs(std::span<const SiteCall> calls,
                                   const std::atomic<bool>* stop = nullptr,
                                   std::int64_t* compared = nullptr);

}  // namespace attest
