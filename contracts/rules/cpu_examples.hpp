#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/rule.hpp"

namespace attest {

/// A call that breaks one rule of extend and decode, as small as it gets. For tests.
struct BrokenCpuCall {
  std::string_view rule;
  Severity severity;       ///< of the finding it must give on a strict kernel
  std::string_view story;  ///< one line
  Problem problem;
  Call call;
};

/// One or more for every rule of extend and decode.
std::vector<BrokenCpuCall> broken_extend_calls();
std::vector<BrokenCpuCall> broken_tree_calls();
std::vector<BrokenCpuCall> broken_decode_calls();
std::vector<BrokenCpuCall> broken_memory_calls();  ///< of both, on tensors and their memory

}  // namespace attest
