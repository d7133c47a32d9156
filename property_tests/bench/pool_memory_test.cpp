#include "property_tests/bench/pool_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace attest {
namespace {

TEST(PoolMemory, HoldsWhatWasWrittenOnEitherKindOfPages) {
  for (const Pages pages : {Pages::as_allocated, Pages::huge}) {
    PoolMemory memory(3'000'001, pages);
    ASSERT_EQ(memory.values().size(), 3'000'001U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.values().data()) % 64, 0U);
    for (std::size_t i = 0; i < memory.values().size(); ++i) {
      memory.values()[i] = static_cast<std::uint16_t>(i);
    }
    EXPECT_EQ(memory.values()[3'000'000], static_cast<std::uint16_t>(3'000'000));
  }
}

TEST(SumWords, CountsEveryWordOnceWhateverTheStreams) {
  for (const std::size_t count : {0UL, 7UL, 15UL, 16UL, 64UL, 65UL, 1000UL, 4099UL}) {
    PoolMemory memory(4 * count, Pages::as_allocated);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t word = (i + 1) * 0x9e3779b97f4a7c15ULL;
      std::memcpy(memory.values().data() + 4 * i, &word, sizeof word);
      expected += word;
    }
    for (int streams = 1; streams <= 4; ++streams) {
      EXPECT_EQ(sum_words(std::as_bytes(std::span(memory.values())), streams), expected)
          << count << " words, " << streams << " streams";
    }
  }
}

}  // namespace
}  // namespace attest
