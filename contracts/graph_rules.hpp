#pragma once

#include "contracts/rule.hpp"
#include "contracts/step_rules.hpp"

namespace attest {

/// What holds between the capture of a graph and its replays, among the calls of one layer
/// (graph_pairs.hpp). A replay without a capture beside it is not judged; LayerCalls counts them.

/// Scalars are launch arguments: the graph keeps the captured ones.
void graph_scalars_are_the_captured(const LayerCalls& calls, Report& report);
/// So are addresses, dtypes and strides; views may grow inside the captured buffer.
void graph_tensors_are_the_captured(const LayerCalls& calls, Report& report);
/// The replay's lengths and tables keep the contract with what the graph has frozen.
void graph_serves_the_replay(const LayerCalls& calls, Report& report);

}  // namespace attest
