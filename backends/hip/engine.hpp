#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "backends/hip/kernels/paged_launch.hpp"
#include "backends/hip/runtime/launch_types.hpp"
#include "memory/kv_pool.hpp"

namespace attest::hip {

/// What a session's stream did while it was captured: launches with their pointers and scalars.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
  /// Does it again, on what lies behind the pointers now.
  virtual void replay() = 0;
};

/// The memory and stream of one launch on one engine. What it hands out lives as long as it does.
class LaunchSession {
 public:
  virtual ~LaunchSession() = default;
  /// The bytes as the kernel reads them. `bytes` must stay alive.
  virtual const void* input(std::span<const std::byte> bytes) = 0;
  /// A copy of the bytes that write() may change later, as a framework changes the arrays that a
  /// captured graph reads.
  virtual void* metadata(std::span<const std::byte> bytes) = 0;
  /// To and from memory of metadata() or scratch(), after what the stream has done so far.
  virtual void write(void* memory, std::span<const std::byte> bytes) = 0;
  virtual void read(std::span<std::byte> bytes, const void* memory) = 0;
  /// Element 0 of a pool; everything the kernel may reach around it holds the pool's bytes.
  virtual const void* pool(const KvPool& pool) = 0;
  /// Starts as the bytes given, and is copied back to them by finish().
  virtual void* output(std::span<std::byte> bytes) = 0;
  /// Memory that no kernel has written: NaN.
  virtual void* scratch(std::size_t bytes) = 0;
  /// Calls `launches` with the session's stream.
  virtual void run(const std::function<void(Stream)>& launches) = 0;
  /// Calls `launches` with the stream in capture: nothing runs. On a GPU its runtime's own graphs;
  /// on the host the same by hand. The graph must not outlive the session.
  virtual std::unique_ptr<LaunchGraph> capture(const std::function<void(Stream)>& launches) = 0;
  /// Waits for the launches and copies outputs back. \returns what they left outside the outputs.
  /// \throws DeviceError naming what failed, a fault of the kernel included.
  virtual std::vector<std::string> finish() = 0;
};

/// One way to run the kernels.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;  ///< "host", "cuda", "rocm", "rocjitsu"
  virtual std::string_view says() const = 0;
  /// Whether a fault of the kernel can take the process down.
  virtual bool isolate() const = 0;
  virtual int device_count() const = 0;
  /// Whether it runs on that device, tried once; else the reason.
  virtual Answer usable(int device) const = 0;
  virtual PagedKernels kernels() const = 0;
  /// What the choice of a form reckons with.
  virtual int multiprocessors(int device) const = 0;
  /// "host wave 32", "NVIDIA H200 (cuda, sm_90)".
  virtual std::string label(int device) const = 0;
  virtual std::unique_ptr<LaunchSession> session(const RunOptions& options) const = 0;
};

/// Fibers on this machine's CPU. `wave_size`: 32 or 64 lanes.
std::unique_ptr<Engine> host_engine(int wave_size);
/// GPUs of one vendor, "cuda" or "rocm", or AMD's emulator of them, "rocjitsu". Unavailable where
/// ATTEST_HIP left the engine out.
std::unique_ptr<Engine> device_engine(std::string_view name);
/// What to do about an engine that ATTEST_HIP left out: "cuda" or "rocm".
std::string not_built(std::string_view engine);

}  // namespace attest::hip
