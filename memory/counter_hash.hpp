#pragma once

#include <cstdint>

namespace attest {

// The counter hash behind every fill: unsigned 64-bit arithmetic alone, so a host, a device and
// another language compute the same bits. Everything here is constexpr over integers.

/// Weyl step, 2^64 / golden ratio, odd. Source: Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators" (OOPSLA 2014).
inline constexpr std::uint64_t weyl_step = 0x9e3779b97f4a7c15ULL;

/// Finaliser of splitmix64 (Stafford's variant 13): a bijection of 64 bits in which every input bit
/// flips every output bit with probability close to a half.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Key of one more level: chain(chain(seed, a), b) is a function of (seed, a, b).
constexpr std::uint64_t chain(std::uint64_t key, std::uint64_t next) {
  return mix64((key ^ next) + weyl_step);
}
constexpr std::uint64_t chain(std::uint64_t key, std::int64_t next) {
  return chain(key, static_cast<std::uint64_t>(next));
}

/// What a hash is for: equal coordinates of different streams are unrelated.
enum class Stream : std::uint64_t {
  q = 1,
  k,
  v,
  sink,
  padding,
  pattern,
  direction,
  code,
  placement
};

constexpr std::uint64_t stream_key(std::uint64_t seed, Stream stream) {
  return chain(mix64(seed + weyl_step), static_cast<std::uint64_t>(stream));
}

/// Entries of the table of normal quantiles; one index costs `index_bits` of a hash.
inline constexpr int index_bits = 12;
inline constexpr std::int64_t normal_entries = std::int64_t{1} << index_bits;
/// Elements served by one hash.
inline constexpr std::int64_t elements_per_hash = 4;

/// Hash of elements 4 * block .. 4 * block + 3 of the row `key`.
constexpr std::uint64_t block_hash(std::uint64_t key, std::int64_t block) {
  return mix64(key + (static_cast<std::uint64_t>(block) + 1) * weyl_step);
}

/// Table index of element `lane` (0..3) of a block: the top 48 bits, 12 each, first lane lowest.
constexpr std::uint32_t lane_index(std::uint64_t hash, int lane) {
  return static_cast<std::uint32_t>(hash >> (16 + index_bits * lane)) & ((1U << index_bits) - 1U);
}

/// Table index of element d of the row `key`, alone.
constexpr std::uint32_t normal_index(std::uint64_t key, std::int64_t d) {
  return lane_index(block_hash(key, d / elements_per_hash),
                    static_cast<int>(d % elements_per_hash));
}

/// Sign of element d of the pattern `key`: true = negative. 64 signs per hash.
constexpr bool is_negative(std::uint64_t key, std::int64_t d) {
  return ((block_hash(key, d / 64) >> (d % 64)) & 1U) != 0;
}

/// A number in [0, count) from the top 32 bits. \pre 0 < count < 2^31.
constexpr std::int64_t below(std::uint64_t hash, std::int64_t count) {
  return static_cast<std::int64_t>(((hash >> 32) * static_cast<std::uint64_t>(count)) >> 32);
}

}  // namespace attest
