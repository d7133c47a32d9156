#include "memory/counter_hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>

namespace attest {
namespace {

// splitmix64 seeded with 0 gives these three numbers first (the reference implementation's output).
TEST(CounterHash, FollowsSplitmix64) {
  EXPECT_EQ(block_hash(0, 0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(block_hash(0, 1), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(block_hash(0, 2), 0x06c45d188009454fULL);
}

TEST(CounterHash, IsAConstantOfTheHarness) {
  static_assert(chain(1, std::uint64_t{2}) == mix64(3 + weyl_step));
  EXPECT_EQ(stream_key(0, Stream::q), 627405149472732430ULL);
  EXPECT_EQ(stream_key(1, Stream::k), 13608149317741381227ULL);
  EXPECT_EQ(normal_index(42, 1000), 2349U);
}

TEST(CounterHash, GivesEveryLaneItsOwnTwelveBits) {
  const std::uint64_t hash = 0xfedcba9876543210ULL;
  EXPECT_EQ(lane_index(hash, 0), 0x654U);
  EXPECT_EQ(lane_index(hash, 1), 0x987U);
  EXPECT_EQ(lane_index(hash, 2), 0xcbaU);
  EXPECT_EQ(lane_index(hash, 3), 0xfedU);
}

TEST(CounterHash, UsesEveryIndexEquallyOften) {
  std::array<int, normal_entries> count{};
  constexpr int per_entry = 256;
  for (std::int64_t d = 0; d < normal_entries * per_entry; ++d) ++count[normal_index(7, d)];
  double chi2 = 0;
  for (const int c : count) chi2 += (c - per_entry) * (c - per_entry) / double{per_entry};
  // Chi-squared of 4095 degrees of freedom: mean 4095, standard deviation 90.5.
  EXPECT_NEAR(chi2, normal_entries - 1, 5 * std::sqrt(2.0 * normal_entries));
}

TEST(CounterHash, FlipsHalfOfTheBitsForAnyChangedCoordinate) {
  double flipped = 0;
  int pairs = 0;
  for (std::uint64_t a = 0; a < 64; ++a) {
    for (int bit = 0; bit < 64; ++bit, ++pairs) {
      flipped += std::popcount(chain(5, a) ^ chain(5, a ^ (std::uint64_t{1} << bit)));
    }
  }
  EXPECT_NEAR(flipped / pairs, 32, 0.5);
}

TEST(CounterHash, KeepsStreamsAndLevelsApart) {
  EXPECT_NE(stream_key(1, Stream::k), stream_key(1, Stream::v));
  EXPECT_NE(stream_key(1, Stream::k), stream_key(2, Stream::k));
  EXPECT_NE(chain(chain(9, std::uint64_t{1}), std::uint64_t{2}),
            chain(chain(9, std::uint64_t{2}), std::uint64_t{1}));
}

TEST(CounterHash, DrawsBelowItsBound) {
  std::array<int, 3> seen{};
  for (std::uint64_t i = 0; i < 300; ++i) ++seen.at(static_cast<std::size_t>(below(mix64(i), 3)));
  for (const int n : seen) EXPECT_NEAR(n, 100, 40);
  EXPECT_EQ(below(~std::uint64_t{0}, 1), 0);
}

}  // namespace
}  // namespace attest
