#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/hip/runtime/device_error.hpp"
#include "backends/hip/runtime/launch_types.hpp"
#include "contracts/capabilities.hpp"

namespace attest::hip {

struct DeviceInfo {
  int index = 0;
  std::string name;          ///< "NVIDIA H200"
  std::string architecture;  ///< "sm_90", "gfx942"
  std::size_t memory = 0;    ///< bytes in all
  int multiprocessors = 0;
  int wave_size = 0;
  std::size_t shared_per_block = 0;  ///< bytes a launch may ask for
};

/// The runtime of one kind of GPU, one source over HIP and CUDA. Every call that fails throws
/// DeviceError with the call, its arguments and the error's name. Calls mean the device that this
/// thread chose last with use(); streams, events and graphs belong to the device they were made on.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  virtual std::string_view engine() const = 0;  ///< "cuda", "rocm"
  /// "CUDA 13.0, driver 13.0"; "CUDA 13.0, no driver".
  virtual std::string versions() const = 0;
  /// What this binary holds code for: "sm_80 sm_90", "gfx90a gfx942".
  virtual std::string_view architectures() const = 0;

  /// Empty when there is none, whatever the reason.
  virtual std::vector<DeviceInfo> devices() const = 0;
  /// What the driver answers when asked for the number of devices: "cudaErrorNoDevice (no ...)".
  virtual std::string count_error() const = 0;
  /// Whether device `index` runs a kernel of this binary, tried once per process; else the reason:
  /// no device, no permission, no driver, no code for this architecture, a failed launch.
  virtual Answer usable(int index) const = 0;
  /// \throws DeviceError that lists the devices there are.
  virtual void use(int index) const = 0;

  virtual std::size_t free_memory() const = 0;
  /// \throws DeviceError before asking the driver when less than `bytes` and some reserve is free.
  virtual void* allocate(std::size_t bytes) const = 0;
  virtual void release(void* memory) const = 0;

  virtual Stream create_stream() const = 0;
  virtual void destroy(Stream stream) const = 0;
  /// Waits. A kernel's fault shows here.
  virtual void synchronize(Stream stream) const = 0;
  virtual void upload(void* to, std::span<const std::byte> from, Stream stream) const = 0;
  virtual void download(std::span<std::byte> to, const void* from, Stream stream) const = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, Stream stream) const = 0;
  /// Repeats the 4 bytes of `pattern` over `bytes` bytes, on the device. Little-endian: a 2-byte
  /// pattern p is p | p << 16.
  virtual void fill(void* to, std::uint32_t pattern, std::size_t bytes, Stream stream) const = 0;

  virtual void* create_event() const = 0;
  virtual void destroy_event(void* event) const = 0;
  virtual void record(void* event, Stream stream) const = 0;
  /// Waits for `end`. \returns seconds.
  virtual double seconds_between(void* begin, void* end) const = 0;

  /// From now on launches of this thread on `stream` are recorded, not run.
  virtual void begin_capture(Stream stream) const = 0;
  /// \returns the graph, ready to run; to be given to destroy_graph().
  virtual void* end_capture(Stream stream) const = 0;
  virtual void replay(void* graph, Stream stream) const = 0;
  virtual void destroy_graph(void* graph) const = 0;
};

/// Null where ATTEST_HIP left the engine out.
const DeviceRuntime* cuda_runtime();
const DeviceRuntime* rocm_runtime();

}  // namespace attest::hip
