#include "memory/amplitude.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

TEST(Amplitude, TakesLogarithmsWithoutLibm) {
  for (double x = 1e-3; x < 1e9; x *= 1.037) EXPECT_NEAR(natural_log(x), std::log(x), 2e-5) << x;
  EXPECT_EQ(natural_log(1), 0);
}

TEST(Amplitude, ApproximatesTanh) {
  for (double x = 0; x < 6; x += 0.01) EXPECT_NEAR(rough_tanh(x), std::tanh(x), 0.024);
}

TEST(Amplitude, RoundsToFourSignificantBits) {
  for (const Dtype dtype :
       {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::fp8_e4m3fn, Dtype::fp8_e4m3fnuz}) {
    for (double x = 0.02; x < 200; x *= 1.01) {
      const float got = representable(dtype, x);
      EXPECT_EQ(decode(dtype, encode(dtype, got)), got) << name(dtype) << ' ' << x;
      EXPECT_NEAR(got, x, x / 16) << name(dtype);
      EXPECT_EQ(decode(dtype, encode(dtype, nearest(dtype, x))), nearest(dtype, x));
      EXPECT_NEAR(nearest(dtype, x), x, x * unit_roundoff(dtype) * 1.0001);
    }
  }
}

TEST(Amplitude, StaysInsideTheDtype) {
  EXPECT_EQ(representable(Dtype::fp8_e4m3fn, 1e6), 448);
  EXPECT_EQ(representable(Dtype::fp8_e4m3fnuz, 1e6), 240);
  EXPECT_EQ(nearest(Dtype::f16, 1e9), 32768);
  EXPECT_GT(representable(Dtype::fp8_e4m3fn, 1e-9), 0);
  EXPECT_EQ(representable(Dtype::bf16, std::numeric_limits<double>::infinity()), 1);
  EXPECT_EQ(nearest(Dtype::bf16, std::nan("")), 1);
}

TEST(Amplitude, CountsTheDescales) {
  Model model;
  model.softmax_scale = -0.125;
  model.q_descale = 0.5;
  model.k_descale = 4;
  EXPECT_EQ(logit_per_element(model), 0.25);
  EXPECT_EQ(sign_of_scale(model), -1);
}

}  // namespace
}  // namespace attest
