#pragma once

// DeviceRuntime in HIP's words. device_cuda.cpp and device_rocm.cpp include this after the header
// that gives the words their meaning; so there is one source, twice in one binary.

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/hip/runtime/device.hpp"
#include "backends/hip/runtime/device_memory_calls.hpp"
#include "backends/hip/runtime/device_trial.hpp"
#include "backends/hip/runtime/example.hpp"
#include "backends/hip/runtime/fill.hpp"

namespace attest::hip {
namespace {

/// What the engine's own compiler contributed.
struct EngineCode {
  std::string_view architectures;
  void (*example)(Stream, const ExampleCall&);
  void (*fill)(Stream, const FillCall&);
};

class HipRuntime final : public HipMemoryCalls {
 public:
  explicit HipRuntime(const EngineCode& code) : code_(code) {}

  std::string_view engine() const override { return engine_name; }
  std::string_view architectures() const override { return code_.architectures; }

  std::string versions() const override {
    int runtime = 0;
    int driver = 0;
    check(hipRuntimeGetVersion(&runtime), "RuntimeGetVersion");
    const bool present = hipDriverGetVersion(&driver) == hipSuccess && driver > 0;
    return std::string(product) + " " + version_text(runtime) +
           (present ? ", driver " + version_text(driver) : ", no driver");
  }

  std::string count_error() const override {
    int count = 0;
    const hipError_t error = hipGetDeviceCount(&count);
    static_cast<void>(hipGetLastError());
    return said(error);
  }

  std::vector<DeviceInfo> devices() const override {
    int count = 0;
    if (hipGetDeviceCount(&count) != hipSuccess) {
      static_cast<void>(hipGetLastError());
      return {};
    }
    std::vector<DeviceInfo> all;
    for (int i = 0; i < count; ++i) {
      hipDeviceProp_t properties{};
      check(hipGetDeviceProperties(&properties, i), "GetDeviceProperties", i);
      all.push_back({.index = i,
                     .name = properties.name,
                     .architecture = architecture_of(properties),
                     .memory = properties.totalGlobalMem,
                     .multiprocessors = properties.multiProcessorCount,
                     .wave_size = properties.warpSize,
                     .shared_per_block = shared_limit_of(properties)});
    }
    return all;
  }

  Answer usable(int index) const override {
    const std::lock_guard lock(mutex_);
    const auto known = answers_.find(index);
    if (known != answers_.end()) return known->second;
    return answers_[index] = try_device(*this, index, code_.example);
  }

  void use(int index) const override {
    const std::vector<DeviceInfo> all = devices();
    if (index >= 0 && static_cast<std::size_t>(index) < all.size()) {
      check(hipSetDevice(index), "SetDevice", index);
      return;
    }
    throw DeviceError(no_such_device(*this, index));
  }

  void fill(void* to, std::uint32_t pattern, std::size_t bytes, Stream stream) const override {
    code_.fill(stream, {to, bytes, pattern});
  }

  void* create_event() const override {
    hipEvent_t event = nullptr;
    check(hipEventCreate(&event), "EventCreate");
    return event;
  }
  void destroy_event(void* event) const override {
    check(hipEventDestroy(static_cast<hipEvent_t>(event)), "EventDestroy", event);
  }
  void record(void* event, Stream stream) const override {
    check(hipEventRecord(static_cast<hipEvent_t>(event), of(stream)), "EventRecord", event);
  }
  double seconds_between(void* begin, void* end) const override {
    float milliseconds = 0;
    check(hipEventSynchronize(static_cast<hipEvent_t>(end)), "EventSynchronize", end);
    check(hipEventElapsedTime(&milliseconds, static_cast<hipEvent_t>(begin),
                              static_cast<hipEvent_t>(end)),
          "EventElapsedTime", begin, end);
    return static_cast<double>(milliseconds) * 1e-3;
  }

  void begin_capture(Stream stream) const override {
    check(hipStreamBeginCapture(of(stream), hipStreamCaptureModeThreadLocal), "StreamBeginCapture",
          stream.handle);
  }
  void* end_capture(Stream stream) const override {
    hipGraph_t graph = nullptr;
    check(hipStreamEndCapture(of(stream), &graph), "StreamEndCapture", stream.handle);
    hipGraphExec_t exec = nullptr;
    const hipError_t error = hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0);
    check(hipGraphDestroy(graph), "GraphDestroy", graph);
    check(error, "GraphInstantiate", graph);
    return exec;
  }
  void replay(void* graph, Stream stream) const override {
    check(hipGraphLaunch(static_cast<hipGraphExec_t>(graph), of(stream)), "GraphLaunch", graph,
          stream.handle);
  }
  void destroy_graph(void* graph) const override {
    check(hipGraphExecDestroy(static_cast<hipGraphExec_t>(graph)), "GraphExecDestroy", graph);
  }

 private:
  EngineCode code_;
  mutable std::mutex mutex_;
  mutable std::map<int, Answer> answers_;
};

}  // namespace
}  // namespace attest::hip
