#include "backends/amx/emulation/tile_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace attest::amx {
namespace {

TileConfig full_config() {
  TileConfig config;
  config.palette = 1;
  config.rows.fill(16);
  config.colsb.fill(64);
  return config;
}

TileFile configured(const TileConfig& config = full_config()) {
  TileFile file;
  EXPECT_FALSE(load_config(file, config));
  return file;
}

TEST(TileConfig, EachIllegalFieldRaisesGp) {
  const std::pair<const char*, void (*)(TileConfig&)> cases[] = {
      {"palette", [](TileConfig& c) { c.palette = 2; }},
      {"reserved", [](TileConfig& c) { c.reserved0[3] = 1; }},
      {"reserved", [](TileConfig& c) { c.reserved1[0] = 1; }},
      {"reserved", [](TileConfig& c) { c.reserved2[7] = 1; }},
      {"colsb > 64", [](TileConfig& c) { c.colsb[2] = 65; }},
      {"rows > 16", [](TileConfig& c) { c.rows[2] = 17; }},
      {"exactly one", [](TileConfig& c) { c.rows[5] = 0; }},
      {"exactly one", [](TileConfig& c) { c.colsb[5] = 0; }},
  };
  for (const auto& [says, change] : cases) {
    TileConfig config = full_config();
    change(config);
    TileFile file = configured();
    const Fault fault = load_config(file, config);
    EXPECT_EQ(fault.exception, Exception::gp) << says;
    EXPECT_THAT(fault.reason, testing::HasSubstr(says));
    EXPECT_TRUE(file.configured) << "a fault leaves the state unchanged";
  }
}

TEST(TileConfig, PaletteZeroReleasesAndStoringThenGivesZeros) {
  TileFile file = configured();
  EXPECT_FALSE(load_config(file, TileConfig{}));
  EXPECT_FALSE(file.configured);
  TileConfig stored = full_config();
  store_config(file, stored);
  EXPECT_EQ(std::memcmp(&stored, std::array<char, 64>{}.data(), 64), 0);
}

TEST(TileMoves, ColsbThatIsNoMultipleOfFourRaisesUd) {
  for (std::uint16_t colsb = 1; colsb <= 64; ++colsb) {
    TileConfig config = full_config();
    config.colsb[0] = colsb;
    TileFile file = configured(config);
    EXPECT_EQ(zero(file, 0).exception, colsb % 4 ? Exception::ud : Exception::none) << colsb;
  }
}

TEST(TileMoves, UnconfiguredTilesRaiseUd) {
  TileFile file;
  EXPECT_EQ(zero(file, 0).exception, Exception::ud);
  std::byte buffer[64] = {};
  EXPECT_EQ(load(file, 0, buffer, 0).exception, Exception::ud);
  EXPECT_EQ(dot(file, Dot::bf16, 0, 1, 2).exception, Exception::ud);
}

TEST(TileMoves, LoadThenStoreMovesExactlyTheConfiguredBytes) {
  TileConfig config = full_config();
  config.rows[3] = 5;
  config.colsb[3] = 12;
  TileFile file = configured(config);
  std::array<std::byte, 1024> in;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7 + 1);
  std::array<std::byte, 1024> out{};
  EXPECT_FALSE(load(file, 3, in.data(), 20));
  EXPECT_FALSE(store(file, 3, out.data(), 12));
  for (std::size_t r = 0; r < 5; ++r) {
    EXPECT_EQ(std::memcmp(out.data() + 12 * r, in.data() + 20 * r, 12), 0);
  }
  EXPECT_EQ(out[60], std::byte{0});
}

TEST(TileMoves, StartRowSkipsTheFirstRowsOnceAndLeavesThemZero) {
  TileConfig config = full_config();
  config.start_row = 3;
  TileFile file = configured(config);
  std::array<std::byte, 1024> ones;
  ones.fill(std::byte{1});
  EXPECT_FALSE(load(file, 0, ones.data(), 64));
  EXPECT_EQ(file.data[0][2][0], 0);
  EXPECT_EQ(file.data[0][3][0], 1);
  EXPECT_EQ(file.config.start_row, 0);
}

TEST(TileMoves, AStartRowPastTheLastRowRaisesInLoadsAndStoresOnly) {
  TileConfig config = full_config();
  config.start_row = 200;
  TileFile file = configured(config);
  std::array<std::byte, 1024> buffer{};
  EXPECT_EQ(load(file, 0, buffer.data(), 64).exception, Exception::ud);
  EXPECT_EQ(store(file, 0, buffer.data(), 64).exception, Exception::ud);
  EXPECT_FALSE(dot(file, Dot::bf16, 0, 1, 2));
  EXPECT_FALSE(load(file, 0, buffer.data(), 64)) << "the dot reset start_row";
}

TEST(Dots, OperandShapesThatDoNotFitRaiseUd) {
  const std::pair<const char*, void (*)(TileConfig&)> cases[] = {
      {"dst.rows", [](TileConfig& c) { c.rows[0] = 8; }},
      {"dst.colsb", [](TileConfig& c) { c.colsb[0] = 32; }},
      {"src1.colsb / 4", [](TileConfig& c) { c.colsb[1] = 32; }},
      {"multiple of 4", [](TileConfig& c) { c.colsb[2] = c.colsb[0] = 62; }},
      {"no rows", [](TileConfig& c) { c.rows[2] = 0, c.colsb[2] = 0; }},
  };
  for (const auto& [says, change] : cases) {
    TileConfig config = full_config();
    change(config);
    TileFile file = configured(config);
    const Fault fault = dot(file, Dot::bf16, 0, 1, 2);
    EXPECT_EQ(fault.exception, Exception::ud) << says;
    EXPECT_THAT(fault.reason, testing::HasSubstr(says));
  }
  TileFile file = configured();
  EXPECT_EQ(dot(file, Dot::ss, 0, 0, 2).exception, Exception::ud);
  EXPECT_EQ(dot(file, Dot::ss, 0, 1, 1).exception, Exception::ud);
}

/// Bit patterns of one class of bf16 data.
std::uint16_t draw(int data_class, std::mt19937& random) {
  const auto bits = static_cast<std::uint16_t>(random());
  const auto with_exponent = [&](int low, int high) {
    const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    return static_cast<std::uint16_t>((bits & 0x807f) | (exponent << 7));
  };
  switch (data_class) {
    case 0:
      return with_exponent(120, 130);
    case 1:
      return with_exponent(1, 254);
    case 2:
      return with_exponent(0, 3);  // denormals and what underflows to them
    case 3:
      return with_exponent(250, 255);  // overflow, infinities, NaN
    case 4:
      return with_exponent(60, 68);  // products at the flush-to-zero boundary
    case 5:
      return static_cast<std::uint16_t>((bits & 0x8000) | 0x3f80);  // cancellation
    default:
      return bits;  // raw bits: quiet and signalling NaN too
  }
}

void fill(TileFile& file, int tile, int data_class, std::mt19937& random) {
  for (auto& row : file.data[static_cast<std::size_t>(tile)]) {
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint16_t bits = draw(data_class, random);
      std::memcpy(row.data() + 2 * i, &bits, 2);
    }
  }
}

TEST(Dots, TheVectorPathEqualsTheScalarOneBitForBitInEveryDataClass) {
  std::mt19937 random(1);
  for (const Dot kind : {Dot::bf16, Dot::fp16}) {
    for (int data_class = 0; data_class < 7; ++data_class) {
      for (int n = 0; n < 40; ++n) {
        TileFile fast = configured();
        for (const int tile : {0, 1, 2}) fill(fast, tile, data_class, random);
        TileFile slow = fast;
        ASSERT_FALSE(dot(fast, kind, 0, 1, 2));
        for (int row = 0; row < 16; ++row) dot_row_scalar(slow, kind, 0, 1, 2, row);
        ASSERT_EQ(std::memcmp(&fast.data, &slow.data, sizeof fast.data), 0)
            << "class " << data_class << " round " << n;
      }
    }
  }
}

/// One pair product into a zero tile: (a0 * b0) even, (a1 * b1) odd, plus dst.
float one_pair(std::uint16_t a0, std::uint16_t b0, std::uint16_t a1, std::uint16_t b1, float dst) {
  TileConfig config = full_config();
  config.rows[0] = config.rows[1] = config.rows[2] = 1;
  config.colsb[0] = config.colsb[1] = config.colsb[2] = 4;
  TileFile file = configured(config);
  const std::uint16_t a[2] = {a0, a1};
  const std::uint16_t b[2] = {b0, b1};
  std::memcpy(file.data[0][0].data(), &dst, 4);
  std::memcpy(file.data[1][0].data(), a, 4);
  std::memcpy(file.data[2][0].data(), b, 4);
  EXPECT_FALSE(dot(file, Dot::bf16, 0, 1, 2));
  float result = 0;
  std::memcpy(&result, file.data[0][0].data(), 4);
  return result;
}

TEST(Dots, NanPriorityIsDestinationThenEvenThenOdd) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const float dst_nan = std::bit_cast<float>(0x7fa00001U);
  EXPECT_EQ(bits(one_pair(0x7fc1, 0x3f80, 0x7fc2, 0x3f80, 0)), 0x7fc10000U);
  EXPECT_EQ(bits(one_pair(0x3f80, 0x3f80, 0x7f82, 0x3f80, 0)), 0x7fc20000U) << "quieted";
  EXPECT_EQ(bits(one_pair(0x7fc1, 0x7fc5, 0x3f80, 0x3f80, 0)), 0x7fc10000U) << "src1 first";
  EXPECT_EQ(bits(one_pair(0x7fc1, 0x3f80, 0x3f80, 0x3f80, dst_nan)), 0x7fe00001U);
  EXPECT_EQ(bits(one_pair(0x7f80, 0x0000, 0x3f80, 0x3f80, 0)), 0xffc00000U) << "inf * 0";
}

TEST(Dots, DenormalInputsAndResultsAreZero) {
  EXPECT_EQ(one_pair(0x0001, 0x7f00, 0, 0, 0), 0.0F);
  EXPECT_EQ(one_pair(0x1f80, 0x1f80, 0, 0, 0), 0.0F) << "2^-64 * 2^-64 flushes";
  EXPECT_EQ(one_pair(0, 0, 0, 0, 0x1p-140F), 0.0F) << "a denormal destination too";
}

TEST(Dots, Int8WrapsAroundWithoutSaturation) {
  TileConfig config = full_config();
  TileFile file = configured(config);
  const std::int32_t start = 0x7fffffff;
  std::memcpy(file.data[0][0].data(), &start, 4);
  file.data[1][0][0] = 0x80;
  file.data[2][0][0] = 0x80;
  const auto run = [&](Dot kind) {
    TileFile copy = file;
    EXPECT_FALSE(dot(copy, kind, 0, 1, 2));
    std::uint32_t result = 0;
    std::memcpy(&result, copy.data[0][0].data(), 4);
    return result;
  };
  EXPECT_EQ(run(Dot::ss), 0x7fffffffU + 16384U);
  EXPECT_EQ(run(Dot::su), 0x7fffffffU - 16384U);
  EXPECT_EQ(run(Dot::us), 0x7fffffffU - 16384U);
  EXPECT_EQ(run(Dot::uu), 0x7fffffffU + 16384U);
}

}  // namespace
}  // namespace attest::amx
