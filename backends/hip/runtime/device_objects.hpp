#pragma once

#include <cstddef>
#include <utility>

#include "backends/hip/runtime/device.hpp"

namespace attest::hip {

/// What a device runtime handed out, given back at the end of scope. Failures while giving back are
/// dropped: the error that led here is already on its way.
template <class Handle, void (*give_back)(const DeviceRuntime&, Handle)>
class DeviceObject {
 public:
  DeviceObject() = default;
  DeviceObject(const DeviceRuntime& runtime, Handle handle) : runtime_(&runtime), handle_(handle) {}
  DeviceObject(DeviceObject&& other) noexcept
      : runtime_(std::exchange(other.runtime_, nullptr)), handle_(other.handle_) {}
  DeviceObject& operator=(DeviceObject&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~DeviceObject() {
    if (runtime_ == nullptr) return;
    try {
      give_back(*runtime_, handle_);
    } catch (const DeviceError&) {  // NOLINT(bugprone-empty-catch): see above
    }
  }
  Handle get() const { return handle_; }

 private:
  const DeviceRuntime* runtime_ = nullptr;
  Handle handle_{};
};

inline void release_memory(const DeviceRuntime& runtime, void* memory) { runtime.release(memory); }
inline void destroy_stream(const DeviceRuntime& runtime, Stream stream) { runtime.destroy(stream); }
inline void destroy_event(const DeviceRuntime& runtime, void* event) {
  runtime.destroy_event(event);
}
inline void destroy_graph(const DeviceRuntime& runtime, void* graph) {
  runtime.destroy_graph(graph);
}

using DeviceMemory = DeviceObject<void*, release_memory>;
using DeviceStream = DeviceObject<Stream, destroy_stream>;
using DeviceEvent = DeviceObject<void*, destroy_event>;
using DeviceGraph = DeviceObject<void*, destroy_graph>;

inline DeviceMemory allocate(const DeviceRuntime& runtime, std::size_t bytes) {
  return {runtime, runtime.allocate(bytes)};
}
inline DeviceStream make_stream(const DeviceRuntime& runtime) {
  return {runtime, runtime.create_stream()};
}
inline DeviceEvent make_event(const DeviceRuntime& runtime) {
  return {runtime, runtime.create_event()};
}
/// What `launches` does on `stream`, as a graph.
template <class Launches>
DeviceGraph capture(const DeviceRuntime& runtime, Stream stream, Launches&& launches) {
  runtime.begin_capture(stream);
  try {
    launches();
  } catch (...) {
    try {
      DeviceGraph(runtime, runtime.end_capture(stream));
    } catch (const DeviceError&) {  // NOLINT(bugprone-empty-catch): the first error counts
    }
    throw;
  }
  return {runtime, runtime.end_capture(stream)};
}

}  // namespace attest::hip
