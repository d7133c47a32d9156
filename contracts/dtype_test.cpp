#include "contracts/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace attest {
namespace {

constexpr Dtype small_floats[] = {Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz};

TEST(Dtype, NamesAreReadBack) {
  for (const Dtype d : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz,
                        Dtype::int32, Dtype::int64, Dtype::uint8, Dtype::boolean}) {
    EXPECT_EQ(dtype_from_name(name(d)), d);
  }
  EXPECT_EQ(dtype_from_name("bfloat16"), Dtype::bf16);
  EXPECT_EQ(dtype_from_name("float8_e4m3fnuz"), Dtype::fp8_e4m3fnuz);
  EXPECT_FALSE(dtype_from_name("bf17"));
}

TEST(Dtype, EveryBitPatternSurvivesDecodeThenEncode) {
  for (const Dtype d : small_floats) {
    const std::uint32_t patterns = 1U << (8 * size_bytes(d));
    for (std::uint32_t bits = 0; bits < patterns; ++bits) {
      const float value = decode(d, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(d, encode(d, value))));
      } else {
        ASSERT_EQ(encode(d, value), bits) << name(d) << " " << bits;
      }
    }
  }
}

TEST(Dtype, KnownValuesDecode) {
  EXPECT_EQ(decode(Dtype::fp8_e4m3fn, 0x7e), 448.0F);
  EXPECT_EQ(decode(Dtype::fp8_e4m3fn, 0x01), 0x1p-9F);
  EXPECT_TRUE(std::isnan(decode(Dtype::fp8_e4m3fn, 0xff)));
  EXPECT_EQ(decode(Dtype::fp8_e4m3fnuz, 0x7f), 240.0F);
  EXPECT_EQ(decode(Dtype::fp8_e4m3fnuz, 0x01), 0x1p-10F);
  EXPECT_TRUE(std::isnan(decode(Dtype::fp8_e4m3fnuz, 0x80)));
  EXPECT_EQ(decode(Dtype::f16, 0x3c01), 1.0F + 0x1p-10F);
  EXPECT_EQ(decode(Dtype::f16, 0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(decode(Dtype::bf16, 0x3f80), 1.0F);
}

// The neighbours of a value bracket it, so the nearest of all patterns is what encode must give.
TEST(Dtype, EncodeGivesTheNearestPatternAndTiesToEven) {
  for (const Dtype d : small_floats) {
    const std::uint32_t positive = 1U << (8 * size_bytes(d) - 1);
    for (std::uint32_t bits = 0; bits + 1 < positive; ++bits) {
      const float low = decode(d, bits);
      const float high = decode(d, bits + 1);
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const float middle = low + (high - low) / 2;
      if (middle == low || middle == high) continue;  // float32 has no value between them
      EXPECT_EQ(encode(d, middle) % 2, 0U) << name(d) << " " << bits;
      EXPECT_EQ(encode(d, std::nextafter(middle, low)), bits);
      EXPECT_EQ(encode(d, std::nextafter(middle, high)), bits + 1);
    }
  }
}

TEST(Dtype, OutOfRangeBecomesInfinityOrSaturates) {
  const float huge = 1e30F;
  EXPECT_TRUE(std::isinf(decode(Dtype::f16, encode(Dtype::f16, huge))));
  EXPECT_TRUE(std::isinf(decode(Dtype::bf16, encode(Dtype::bf16, 3.4e38F))));
  EXPECT_EQ(decode(Dtype::fp8_e4m3fn, encode(Dtype::fp8_e4m3fn, -huge)), -448.0F);
  EXPECT_EQ(decode(Dtype::fp8_e4m3fnuz, encode(Dtype::fp8_e4m3fnuz, huge)), 240.0F);
  EXPECT_EQ(decode(Dtype::fp8_e4m3fn, encode(Dtype::fp8_e4m3fn, 465.0F)), 448.0F);
  EXPECT_EQ(encode(Dtype::fp8_e4m3fnuz, -0.0F), 0U);
}

TEST(Dtype, NanPayloadsOfSixteenBitTypesSurviveDecoding) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(decode(Dtype::bf16, 0x7fc2)), 0x7fc20000U);
  EXPECT_NE(std::bit_cast<std::uint32_t>(decode(Dtype::f16, 0x7fc1)),
            std::bit_cast<std::uint32_t>(decode(Dtype::f16, 0x7fc2)));
}

TEST(Dtype, UnitRoundoffBoundsOneRounding) {
  for (const Dtype d : small_floats) {
    double worst = 0;
    for (float x = 1.0F; x < 2.0F; x += 0x1p-13F) {
      worst = std::max(worst, std::fabs(static_cast<double>(decode(d, encode(d, x))) - x) / x);
    }
    EXPECT_LE(worst, unit_roundoff(d)) << name(d);
    EXPECT_GT(worst, unit_roundoff(d) * 0.9) << name(d);
  }
}

}  // namespace
}  // namespace attest
