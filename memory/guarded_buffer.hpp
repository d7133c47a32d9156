#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace attest {

/// Host allocation with canary bytes on both sides. The payload starts aligned to 64 bytes.
class GuardedBuffer {
 public:
  /// `bytes` of payload, filled with `fill`. \throws std::bad_alloc
  explicit GuardedBuffer(std::size_t bytes, std::byte fill = std::byte{0});
  GuardedBuffer(GuardedBuffer&&) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) noexcept;
  ~GuardedBuffer();

  std::byte* data() const { return payload_; }
  std::size_t size() const { return bytes_; }
  std::span<std::byte> bytes() const { return {payload_, bytes_}; }

  /// The first overwritten guard byte, or nothing: "4 bytes before the buffer were overwritten".
  std::optional<std::string> damage() const;

 private:
  std::byte* block_ = nullptr;
  std::byte* payload_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace attest
