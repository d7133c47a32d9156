#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"

namespace attest {

/// The smallest call that breaks one rule: an example for tests and for the reject corpus.
struct BrokenCall {
  std::string_view rule;   ///< Rule::id
  std::string_view story;  ///< one line: what was done to the call
  Problem problem;
  Call call;
  std::optional<Call> sound;  ///< the call before; absent where no call can say the problem
};

/// At least one for every rule of the GPU kernels' groups and of vllm_cpu, the general ones on the
/// shape of arrays included.
std::vector<BrokenCall> broken_gpu_calls();

}  // namespace attest
