#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backends/hip/runtime/host_engine.hpp"

namespace attest::hip::host {

/// What a captured stream did, as a GPU's graph keeps it: kernels with their arguments, pointers
/// and scalars, as they were. What the pointers point to is read when a replay runs.
class HostGraph {
 public:
  void add(std::function<void(Stream)> launch) { launches_.push_back(std::move(launch)); }
  /// Runs all launches in their order. \throws as launch() does
  void replay(Stream stream) const {
    for (const auto& launch : launches_) launch(stream);
  }

 private:
  std::vector<std::function<void(Stream)>> launches_;
};

/// Where launches on the stream are kept instead of run, or nullptr.
inline HostGraph* recording(Stream stream) {
  const auto* const settings = static_cast<const HostSettings*>(stream.handle);
  return settings != nullptr ? settings->recording : nullptr;
}

}  // namespace attest::hip::host
