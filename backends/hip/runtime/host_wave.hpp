#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>

namespace attest::hip::host {

/// Lanes of one wave that reached one wave operation together. records[lane] is what that lane
/// brought, null for a lane that is not there.
struct WaveGroup {
  void* const* records = nullptr;
  int lanes = 0;  ///< the wave size
  /// Ends the launch: `lane` wants something of `other`, which is not there.
  [[noreturn]] void fail_reading_inactive(int lane, int other) const;
};

/// Does the work of one wave operation for all lanes of the group at once.
using WaveWork = void (*)(const WaveGroup& group);

/// Blocks this fiber until the living lanes of its wave are blocked too; those that called from the
/// same place form a group, for which `work` runs once. A building block for whatever a wave does
/// as one: matrix instructions are emulated with it.
/// \param name  for messages: "__shfl_xor".
void join_wave(const char* name, WaveWork work, void* record, std::source_location site);

/// Blocks this fiber until every thread of the block has reached a barrier at the same place.
void wait_at_barrier(std::source_location site);

struct Votes {
  std::uint64_t yes = 0;
  std::uint64_t present = 0;
};
/// Bits by lane: who came with a predicate other than 0, and who came.
Votes vote(const char* name, int predicate, std::source_location site);

enum class Shuffle { from, exclusive_or, down, up };

/// \param width  a power of two; 0 stands for the whole wave.
std::uint64_t shuffle_bits(Shuffle kind, std::uint64_t bits, int operand, int width,
                           std::source_location site);

template <class T>
T shuffle(Shuffle kind, T value, int operand, int width, std::source_location site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "HIP shuffles 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(kind, bits, operand, width, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace attest::hip::host
