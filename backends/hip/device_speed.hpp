#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backends/hip/route.hpp"

namespace attest::hip {

/// A verify step of equal requests, bf16.
struct SpeedShape {
  std::int64_t q_heads = 32, kv_heads = 2;
  std::int64_t head_dim = 128;
  std::int64_t batch = 1;
  std::int64_t q_len = 4;
  std::int64_t keys = 1024;
  std::int64_t page_size = 16;

  /// K and V of the batch, each counted once.
  std::int64_t kv_bytes() const { return batch * keys * kv_heads * head_dim * 4; }
  /// "64:8 batch 32 kv 40960 page 16"
  std::string text() const;
};

/// Times the unified kernel on one GPU: device time of launches in a replayed graph, which walk one
/// block table after the other over a permuted pool, so that no cache holds what they read.
class DeviceSpeed {
 public:
  virtual ~DeviceSpeed() = default;
  virtual std::string device() const = 0;
  virtual Route route(const SpeedShape& shape) const = 0;
  /// Seconds of one launch, the reduction included: the median over replays.
  virtual double seconds(const SpeedShape& shape, const Route& route) = 0;
  /// Bytes read plus bytes written per second by a plain copy on the same device.
  virtual double copy_bandwidth() = 0;
};

/// On device 0 of "cuda" or "rocm". Null where the engine is not available; `reason` then says why.
std::unique_ptr<DeviceSpeed> device_speed(std::string_view engine, std::string& reason);

}  // namespace attest::hip
