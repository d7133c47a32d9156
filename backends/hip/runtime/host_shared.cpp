#include "backends/hip/runtime/host_shared.hpp"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

// Null unless the program is linked with AddressSanitizer.
#pragma weak __asan_poison_memory_region
#pragma weak __asan_unpoison_memory_region

namespace attest::hip::host {
namespace {

constexpr std::size_t guard = 512;
constexpr std::byte guard_byte{0xa5};
// Read as f32, bf16 and f16 it is a NaN; of the two bytes one is a NaN of e4m3fn.
constexpr std::uint16_t nan_pattern = 0x7fc5;

bool sanitized() { return &__asan_poison_memory_region != nullptr; }

void allow(const void* from, std::size_t bytes) {
  if (sanitized()) __asan_unpoison_memory_region(from, bytes);
}

void forbid(const void* from, std::size_t bytes) {
  if (sanitized()) __asan_poison_memory_region(from, bytes);
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (memory_) allow(memory_.get(), capacity_);
}

std::byte* SharedMemory::fill(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t wanted = alignment + guard + bytes + guard;
  if (memory_) allow(memory_.get(), capacity_);
  if (wanted > capacity_) {
    memory_ = std::make_unique<std::byte[]>(wanted);
    capacity_ = wanted;
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    begin_ = memory_.get() + guard + (alignment - (address + guard) % alignment) % alignment;
  }
  bytes_ = bytes;
  for (std::size_t i = 0; i + sizeof nan_pattern <= bytes; i += sizeof nan_pattern) {
    std::memcpy(begin_ + i, &nan_pattern, sizeof nan_pattern);
  }
  if (bytes % 2 != 0) begin_[bytes - 1] = std::byte{nan_pattern >> 8};
  std::memset(begin_ - guard, static_cast<int>(guard_byte), guard);
  std::memset(begin_ + bytes, static_cast<int>(guard_byte), guard);
  forbid(memory_.get(), static_cast<std::size_t>(begin_ - memory_.get()));
  forbid(begin_ + bytes, static_cast<std::size_t>(memory_.get() + capacity_ - (begin_ + bytes)));
  return begin_;
}

std::string SharedMemory::damage() const {
  if (sanitized()) return "";  // it has reported the write itself, and forbids this look
  for (std::size_t i = 0; i < guard; ++i) {
    if (begin_[bytes_ + i] != guard_byte) {
      return "byte " + std::to_string(bytes_ + i) + " of " + std::to_string(bytes_);
    }
    if (*(begin_ - 1 - i) != guard_byte) return "byte -" + std::to_string(i + 1);
  }
  return "";
}

}  // namespace attest::hip::host
