#include "property_tests/bench/pool_memory.hpp"

#include <immintrin.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

namespace attest {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t chunk = 128;  ///< bytes of a stream at a time

__m256i words(const std::byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

std::uint64_t total(__m256i lanes) {
  std::uint64_t words[4];
  std::memcpy(words, &lanes, sizeof words);
  return words[0] + words[1] + words[2] + words[3];
}

/// `streams` runs of `each` bytes, a multiple of 128, one behind the other.
template <std::size_t streams>
std::uint64_t sum_streams(const std::byte* data, std::size_t each) {
  __m256i sums[8] = {};
  for (std::size_t at = 0; at < each; at += chunk) {
    for (std::size_t s = 0; s < streams; ++s) {
      const std::byte* const here = data + s * each + at;
      for (std::size_t k = 0; k < 4; ++k) {
        __m256i& sum = sums[(4 * s + k) % 8];
        sum = _mm256_add_epi64(sum, words(here + 32 * k));
      }
    }
  }
  std::uint64_t all = 0;
  for (const __m256i sum : sums) all += total(sum);
  return all;
}

}  // namespace

PoolMemory::PoolMemory(std::size_t count, Pages pages) : count_(count) {
  const std::size_t alignment = pages == Pages::huge ? huge_page : 64;
  const std::size_t bytes = (count * sizeof(std::uint16_t) + alignment - 1) / alignment * alignment;
  memory_.reset(static_cast<std::uint16_t*>(std::aligned_alloc(alignment, bytes)));
  if (!memory_) throw std::bad_alloc();
  // Where the kernel has no huge pages it says so and nothing changes.
  if (pages == Pages::huge) static_cast<void>(madvise(memory_.get(), bytes, MADV_HUGEPAGE));
}

std::uint64_t sum_words(std::span<const std::byte> bytes, int streams) {
  const std::size_t runs = streams >= 4 ? 4 : streams >= 2 ? 2 : 1;
  const std::size_t each = bytes.size() / runs / chunk * chunk;
  std::uint64_t sum = 0;
  switch (runs) {
    case 4:
      sum = sum_streams<4>(bytes.data(), each);
      break;
    case 2:
      sum = sum_streams<2>(bytes.data(), each);
      break;
    default:
      sum = sum_streams<1>(bytes.data(), each);
      break;
  }
  for (std::size_t at = runs * each; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  return sum;
}

}  // namespace attest
