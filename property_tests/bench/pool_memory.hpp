#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace attest {

/// What the pages of a pool are. PyTorch's CPU allocator (c10/core/impl/alloc_cpu.cpp) leaves that
/// to malloc and the kernel, so 4 KiB where transparent huge pages are on `madvise`, and asks for
/// huge pages where THP_MEM_ALLOC_ENABLE=1.
enum class Pages { as_allocated, huge };

/// bf16 memory for the K or V of a benchmark. \throws std::bad_alloc
class PoolMemory {
 public:
  PoolMemory() = default;
  PoolMemory(std::size_t count, Pages pages);

  std::span<std::uint16_t> values() { return {memory_.get(), count_}; }
  std::span<const std::uint16_t> values() const { return {memory_.get(), count_}; }

 private:
  std::size_t count_ = 0;
  std::unique_ptr<std::uint16_t, void (*)(void*)> memory_{nullptr, std::free};
};

/// The sum of the 64-bit words of `bytes` modulo 2^64 (a rest of less than a word is left out),
/// read as one to four streams side by side with eight independent accumulators of 32 bytes: fast
/// enough that memory is what bounds it. Needs AVX2.
std::uint64_t sum_words(std::span<const std::byte> bytes, int streams);

}  // namespace attest
