#pragma once

// The calls behind device_implementation.hpp: how they are checked, and those about memory and
// streams. In HIP's words; see there.

#include <sstream>
#include <string>
#include <string_view>

#include "backends/hip/runtime/device.hpp"

namespace attest::hip {
namespace {

std::string said(hipError_t error) {
  return std::string(hipGetErrorName(error)) + " (" + hipGetErrorString(error) + ")";
}

/// \throws DeviceError "cudaMalloc(1048576): cudaErrorMemoryAllocation (out of memory)".
template <class... Arguments>
void check(hipError_t error, std::string_view call, const Arguments&... arguments) {
  if (error == hipSuccess) return;
  static_cast<void>(hipGetLastError());  // or the next call would report it again
  std::ostringstream text;
  text << api_prefix << call << "(";
  std::string_view separator;
  ((text << separator << arguments, separator = ", "), ...);
  text << "): " << said(error);
  throw DeviceError(text.str());
}

hipStream_t of(Stream stream) { return static_cast<hipStream_t>(stream.handle); }

/// Left for the driver, for kernels' local memory and for whoever shares the device.
constexpr std::size_t reserve = std::size_t{256} << 20;

class HipMemoryCalls : public DeviceRuntime {
 public:
  std::size_t free_memory() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    check(hipMemGetInfo(&free, &total), "MemGetInfo");
    return free;
  }
  void* allocate(std::size_t bytes) const override {
    const std::size_t free = free_memory();
    if (free < reserve || bytes > free - reserve) {
      throw DeviceError(std::string(api_prefix) + "Malloc(" + std::to_string(bytes) +
                        ") was not tried: " + std::to_string(free) + " bytes are free, of which " +
                        std::to_string(reserve) + " stay in reserve");
    }
    void* memory = nullptr;
    check(hipMalloc(&memory, bytes), "Malloc", bytes);
    return memory;
  }
  void release(void* memory) const override { check(hipFree(memory), "Free", memory); }

  Stream create_stream() const override {
    hipStream_t stream = nullptr;
    check(hipStreamCreate(&stream), "StreamCreate");
    return {stream};
  }
  void destroy(Stream stream) const override {
    check(hipStreamDestroy(of(stream)), "StreamDestroy", stream.handle);
  }
  void synchronize(Stream stream) const override {
    check(hipStreamSynchronize(of(stream)), "StreamSynchronize", stream.handle);
  }
  void upload(void* to, std::span<const std::byte> from, Stream stream) const override {
    check(hipMemcpyAsync(to, from.data(), from.size(), hipMemcpyHostToDevice, of(stream)),
          "MemcpyAsync", to, "host", from.size());
  }
  void download(std::span<std::byte> to, const void* from, Stream stream) const override {
    check(hipMemcpyAsync(to.data(), from, to.size(), hipMemcpyDeviceToHost, of(stream)),
          "MemcpyAsync", "host", from, to.size());
  }
  void copy(void* to, const void* from, std::size_t bytes, Stream stream) const override {
    check(hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, of(stream)), "MemcpyAsync", to,
          from, bytes);
  }
};

}  // namespace
}  // namespace attest::hip
