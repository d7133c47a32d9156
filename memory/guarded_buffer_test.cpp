#include "memory/guarded_buffer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace attest {
namespace {

using testing::HasSubstr;

TEST(GuardedBuffer, IsAlignedFilledAndWhole) {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 1001U}) {
    const GuardedBuffer buffer(bytes, std::byte{7});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_TRUE(std::all_of(buffer.bytes().begin(), buffer.bytes().end(),
                            [](std::byte b) { return b == std::byte{7}; }));
    EXPECT_EQ(buffer.damage(), std::nullopt);
  }
}

TEST(GuardedBuffer, NoticesOneByteOnEitherSide) {
  for (const std::size_t bytes : {1U, 64U, 1001U}) {
    GuardedBuffer buffer(bytes);
    buffer.data()[bytes] ^= std::byte{1};
    EXPECT_EQ(buffer.damage(), "1 byte after the buffer was overwritten, the first at offset " +
                                   std::to_string(bytes));
    buffer.data()[bytes] ^= std::byte{1};
    EXPECT_EQ(buffer.damage(), std::nullopt);
    *(buffer.data() - 1) ^= std::byte{0x80};
    EXPECT_EQ(buffer.damage(), "1 byte before the buffer was overwritten, the first at offset -1");
  }
}

TEST(GuardedBuffer, NoticesEveryByteOfItsGuards) {
  GuardedBuffer buffer(100);
  for (std::ptrdiff_t i = 1; i <= std::ptrdiff_t{GuardedBuffer::guard_bytes}; ++i) {
    for (std::byte* at : {buffer.data() - i, buffer.data() + 99 + i}) {
      *at ^= std::byte{4};
      EXPECT_NE(buffer.damage(), std::nullopt) << i;
      *at ^= std::byte{4};
    }
  }
}

TEST(GuardedBuffer, CountsWhatWasOverwritten) {
  GuardedBuffer buffer(32);
  std::fill_n(buffer.data() - 8, 4, std::byte{0});
  EXPECT_EQ(buffer.damage().value(),
            "4 bytes before the buffer were overwritten, the first at offset -8");
}

TEST(GuardedBuffer, NoticesAWriteToASealedPayload) {
  GuardedBuffer buffer(77);
  buffer.data()[3] = std::byte{1};
  EXPECT_EQ(buffer.damage(), std::nullopt);
  buffer.seal();
  EXPECT_EQ(buffer.damage(), std::nullopt);
  for (std::size_t i = 0; i < buffer.size(); ++i) {
    buffer.data()[i] ^= std::byte{0x10};
    EXPECT_EQ(buffer.damage().value(), "the 77 bytes of the buffer changed") << i;
    buffer.data()[i] ^= std::byte{0x10};
  }
}

TEST(GuardedBuffer, MovesWithItsGuardsAndSeal) {
  GuardedBuffer first(10);
  first.seal();
  std::byte* const data = first.data();
  GuardedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  second.data()[0] = std::byte{9};
  EXPECT_THAT(second.damage().value(), HasSubstr("changed"));
  GuardedBuffer third(5);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_THAT(third.damage().value(), HasSubstr("changed"));
}

TEST(GuardedBuffer, FingerprintsEveryBitAndTheLength) {
  std::vector<std::byte> bytes(100);
  const std::uint64_t whole = fingerprint(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      EXPECT_NE(fingerprint(bytes), whole);
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  bytes.push_back(std::byte{0});
  EXPECT_NE(fingerprint(bytes), whole);
}

}  // namespace
}  // namespace attest
