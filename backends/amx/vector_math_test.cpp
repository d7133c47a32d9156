#include "backends/amx/vector_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "contracts/dtype.hpp"

namespace attest::amx {
namespace {

float first_lane(__m256 v) { return _mm256_cvtss_f32(v); }
float exp_of(float x) { return first_lane(exp8(_mm256_set1_ps(x))); }
float tanh_of(float x) { return first_lane(tanh8(_mm256_set1_ps(x))); }

TEST(VectorMath, ExpIsWithinTwoTenMillionths) {
  double worst = 0;
  for (float x = -87.29F; x < 88.0F; x += 0.00037F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(exp_of(x)) - exact) / exact);
  }
  EXPECT_LE(worst, 2e-7);
  EXPECT_GT(worst, 0);
}

TEST(VectorMath, ExpOfZeroIsOneAndFarBelowIsZero) {
  EXPECT_EQ(exp_of(0.0F), 1.0F);
  EXPECT_EQ(exp_of(-87.31F), 0.0F);
  EXPECT_EQ(exp_of(-1e30F), 0.0F);
  EXPECT_EQ(exp_of(-std::numeric_limits<float>::infinity()), 0.0F);
}

float exp2_of(float x) { return first_lane(exp2_8(_mm256_set1_ps(x))); }

TEST(VectorMath, Exp2IsWithinFourTenMillionths) {
  double worst = 0;
  for (float x = -125.49F; x < 127.0F; x += 0.00041F) {
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(exp2_of(x)) - exact) / exact);
  }
  EXPECT_LE(worst, 4e-7);
  EXPECT_GT(worst, 0);
}

TEST(VectorMath, Exp2IsExactForIntegersAndZeroFarBelow) {
  for (int n = -126; n <= 127; ++n) {
    EXPECT_EQ(exp2_of(static_cast<float>(n)), std::ldexp(1.0F, n)) << n;
  }
  for (const float x : {-127.0F, -128.5F, -1e30F, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(exp2_of(x), 0.0F) << x;
  }
}

TEST(VectorMath, NanIsKept) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(exp_of(nan)));
  for (const std::uint32_t bits : {0x7fc10000U, 0x7fff0000U, 0xffc00000U}) {
    EXPECT_TRUE(std::isnan(exp2_of(decode(Dtype::f32, bits)))) << bits;
  }
  EXPECT_TRUE(std::isnan(tanh_of(nan)));
  EXPECT_TRUE(std::isnan(decode(Dtype::bf16, static_cast<std::uint32_t>(_mm256_cvtsi256_si32(
                                                 to_bf16(_mm256_set1_ps(nan)))))));
}

TEST(VectorMath, TanhIsWithinOneMillionthAndSaturates) {
  double worst = 0;
  for (float x = -12.0F; x < 12.0F; x += 0.00013F) {
    const double exact = std::tanh(static_cast<double>(x));
    if (exact == 0) continue;
    worst = std::max(worst, std::fabs(static_cast<double>(tanh_of(x)) - exact) / std::fabs(exact));
  }
  EXPECT_LE(worst, 1e-6);
  for (const float x : {50.0F, 1e4F, 3e38F, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(tanh_of(x), 1.0F);
    EXPECT_EQ(tanh_of(-x), -1.0F);
  }
}

TEST(VectorMath, Bf16RoundingIsThatOfTheContract) {
  std::mt19937 random(1);
  for (int n = 0; n < 100000; ++n) {
    const float x = decode(Dtype::f32, static_cast<std::uint32_t>(random()));
    const auto got = static_cast<std::uint32_t>(_mm256_cvtsi256_si32(to_bf16(_mm256_set1_ps(x))));
    ASSERT_EQ(got, encode(Dtype::bf16, x)) << x;
  }
}

TEST(VectorMath, TransposeMakesRowsColumns) {
  alignas(32) float in[8][8];
  __m256i v[8];
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) in[i][j] = static_cast<float>(10 * i + j);
    v[i] = _mm256_castps_si256(_mm256_load_ps(in[i]));
  }
  transpose8(v);
  for (int i = 0; i < 8; ++i) {
    alignas(32) float row[8];
    _mm256_store_ps(row, _mm256_castsi256_ps(v[i]));
    for (int j = 0; j < 8; ++j) EXPECT_EQ(row[j], in[j][i]);
  }
}

}  // namespace
}  // namespace attest::amx
