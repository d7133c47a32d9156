#include "memory/guarded_buffer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "memory/counter_hash.hpp"

namespace attest {
namespace {

constexpr std::size_t alignment = 64;

/// The canary byte at `offset` from the start of its guard: no two neighbours agree, so a shifted
/// copy of a guard is noticed as well.
std::byte canary(std::size_t offset) {
  return static_cast<std::byte>(0xa5U ^ ((offset * 29U) & 0xffU));
}

void write_canary(std::byte* guard) {
  for (std::size_t i = 0; i < GuardedBuffer::guard_bytes; ++i) guard[i] = canary(i);
}

/// Overwritten bytes of a guard: how many, and the first one.
std::optional<std::string> guard_damage(const std::byte* guard, const char* side,
                                        std::int64_t offset_of_guard) {
  std::int64_t count = 0;
  std::int64_t first = 0;
  for (std::size_t i = GuardedBuffer::guard_bytes; i-- > 0;) {
    if (guard[i] == canary(i)) continue;
    ++count;
    first = offset_of_guard + static_cast<std::int64_t>(i);
  }
  if (count == 0) return std::nullopt;
  return std::to_string(count) + (count == 1 ? " byte " : " bytes ") + side +
         (count == 1 ? " the buffer was" : " the buffer were") +
         " overwritten, the first at offset " + std::to_string(first);
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::byte fill) : bytes_(bytes) {
  // The back guard follows the payload directly, whatever its length.
  block_ = static_cast<std::byte*>(
      ::operator new(guard_bytes + bytes + guard_bytes, std::align_val_t{alignment}));
  payload_ = block_ + guard_bytes;
  write_canary(block_);
  std::fill_n(payload_, bytes, fill);
  write_canary(payload_ + bytes);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)),
      payload_(std::exchange(other.payload_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      seal_(std::exchange(other.seal_, std::nullopt)) {}

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(payload_, other.payload_);
  std::swap(bytes_, other.bytes_);
  std::swap(seal_, other.seal_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() { ::operator delete(block_, std::align_val_t{alignment}); }

void GuardedBuffer::seal() { seal_ = fingerprint(bytes()); }

std::optional<std::string> GuardedBuffer::damage() const {
  if (block_ == nullptr) return std::nullopt;
  if (auto before = guard_damage(block_, "before", -static_cast<std::int64_t>(guard_bytes))) {
    return before;
  }
  if (auto after = guard_damage(payload_ + bytes_, "after", static_cast<std::int64_t>(bytes_))) {
    return after;
  }
  if (seal_ && *seal_ != fingerprint(bytes())) {
    return "the " + std::to_string(bytes_) + " bytes of the buffer changed";
  }
  return std::nullopt;
}

std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  // Four independent lanes keep the multiplications in flight. x -> (lane ^ x) * odd is a bijection
  // of either argument, so one changed word always changes its lane, and the sum of mixed lanes.
  std::array<std::uint64_t, 4> lanes = {1, 2, 3, 4};
  constexpr std::size_t step = sizeof(std::uint64_t);
  std::size_t at = 0;
  for (; at + lanes.size() * step <= bytes.size(); at += lanes.size() * step) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + lane * step, step);
      lanes[lane] = (lanes[lane] ^ word) * weyl_step;
      lanes[lane] ^= lanes[lane] >> 32;
    }
  }
  for (std::size_t lane = 0; at < bytes.size(); at += step, ++lane) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(step, bytes.size() - at));
    lanes[lane] = (lanes[lane] ^ word) * weyl_step;
  }
  std::uint64_t sum = bytes.size();
  for (const std::uint64_t lane : lanes) sum = chain(sum, lane);
  return sum;
}

}  // namespace attest
