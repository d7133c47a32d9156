#pragma once

#include <span>

#include "contracts/rule.hpp"
#include "contracts/step_rules.hpp"

namespace attest {

/// What holds between the capture of a graph and its replays, among the calls of one layer. A
/// replay belongs to the capture of its kernel, mode and number of requests and rows; of several,
/// to the one it differs from least. A replay without a capture beside it is not judged.

/// Scalars are launch arguments: the graph keeps the captured ones.
void graph_scalars_are_the_captured(std::span<const SiteCall> calls, Report& report);
/// So are addresses, dtypes and strides; views may grow inside the captured buffer.
void graph_tensors_are_the_captured(std::span<const SiteCall> calls, Report& report);
/// The replay's lengths and tables keep the contract with what the graph has frozen.
void graph_serves_the_replay(std::span<const SiteCall> calls, Report& report);

}  // namespace attest
