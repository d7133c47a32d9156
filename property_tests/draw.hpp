#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace attest {

/// Draws of one generated case: a pure function of (seed, index), the same on every machine.
/// Counter hash in the style of SplitMix64 (Steele et al., OOPSLA 2014), so no state is shared
/// between cases.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t index) : key_(mix(seed ^ mix(index + 1))) {}

  std::uint64_t bits() { return mix(key_ + golden * ++count_); }

  /// Uniform in [0, n), n >= 1. The bias of the multiply-shift is below n / 2^32.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(((bits() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  /// Uniform in [low, high]; low when the range is empty.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return high <= low ? low : low + below(high - low + 1);
  }
  bool chance(std::int64_t percent) { return below(100) < percent; }

  /// One element of an array, vector or span.
  template <class Range>
  const auto& pick(const Range& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(choices))))];
  }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<std::int64_t>(choices.size()))];
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t key_;
  std::uint64_t count_ = 0;
};

}  // namespace attest
