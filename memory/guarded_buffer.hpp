#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace attest {

/// Host allocation with canary bytes on both sides. The payload starts aligned to 64 bytes.
class GuardedBuffer {
 public:
  /// Canary bytes on each side.
  static constexpr std::size_t guard_bytes = 256;

  /// `bytes` of payload, filled with `fill`. \throws std::bad_alloc
  explicit GuardedBuffer(std::size_t bytes, std::byte fill = std::byte{0});
  GuardedBuffer(GuardedBuffer&&) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) noexcept;
  ~GuardedBuffer();

  std::byte* data() const { return payload_; }
  std::size_t size() const { return bytes_; }
  std::span<std::byte> bytes() const { return {payload_, bytes_}; }

  /// From here on the payload must not change either: damage() reports it. Inputs are sealed.
  void seal();

  /// What was overwritten, or nothing: "4 bytes before the buffer were overwritten, the first at
  /// offset -8"; of a sealed buffer also "the 4096 bytes of the buffer changed".
  std::optional<std::string> damage() const;

 private:
  std::byte* block_ = nullptr;
  std::byte* payload_ = nullptr;
  std::size_t bytes_ = 0;
  std::optional<std::uint64_t> seal_;  ///< fingerprint of the payload
};

/// 64-bit fingerprint of bytes, for noticing accidental changes: any single changed 8-byte word
/// changes it.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

}  // namespace attest
