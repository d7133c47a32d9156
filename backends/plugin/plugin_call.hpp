#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/plugin/attest_plugin.h"

namespace attest {

/// An attest_call over the "call" and "options" of a worker request (docs/worker_protocol.md).
class PluginCall {
 public:
  /// `memory`: what the tensors lie in; empty leaves their data NULL.
  /// \throws BackendError for a request that is none, or places a tensor outside the memory.
  PluginCall(std::string_view request, std::span<std::byte> memory);
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;

  const attest_call& get() const { return call_; }

 private:
  const char* keep(std::string text) { return texts_.emplace_back(std::move(text)).c_str(); }

  std::deque<std::string> texts_;
  std::deque<std::vector<std::int64_t>> sizes_;
  std::vector<attest_tensor> tensors_;
  std::vector<attest_scalar> scalars_;
  attest_call call_{};
};

}  // namespace attest
