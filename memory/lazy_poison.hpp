#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/pool_memory.hpp"

namespace attest {

/// Poison that is mapped when it is first read. While it lives, a SIGSEGV handler of the process
/// maps 64 KiB of poison under every read inside `[-before, span)` that finds nothing, and keeps a
/// log. Stores there, and everything outside, go on to the handler that was there before, after one
/// line on standard error with the offset from the base.
class LazyPoison {
 public:
  struct Files {
    int before_base = -1, unreferenced = -1;
    std::int64_t bytes = 0;  ///< of each; a multiple of the stretch
  };

  /// \param writable  real memory, ascending: never covered. Must stay where it is.
  /// \throws std::system_error where the process has no room for a further pool or somebody has
  ///         replaced the handler.
  LazyPoison(std::byte* base, std::int64_t before, std::int64_t span,
             std::span<const ByteRange> writable, Files files);
  ~LazyPoison();
  LazyPoison(const LazyPoison&) = delete;
  LazyPoison& operator=(const LazyPoison&) = delete;

  std::vector<StrayRead> log() const;

  /// Bytes that one fault maps.
  static constexpr std::int64_t stretch = 65536;

 private:
  friend struct FaultRegistry;
  /// From the handler: no allocation, no lock. \returns whether the instruction can run again.
  bool map_at(std::int64_t offset, std::uint64_t instruction);
  void complain(std::int64_t offset, bool store) const;

  struct Entry {
    std::int64_t offset = 0;
    std::uint64_t instruction = 0;
  };
  std::byte* base_;
  std::int64_t before_, span_;
  std::span<const ByteRange> writable_;
  Files files_;
  std::size_t slot_ = 0;
  std::atomic<std::size_t> faults_{0};
  std::array<Entry, 256> entries_{};
};

}  // namespace attest
