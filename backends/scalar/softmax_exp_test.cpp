#include "backends/scalar/softmax_exp.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace attest {
namespace {

// Steps of 64 floats from 0 down to the cut-off: 1.7 million points.
TEST(SoftmaxExp, StaysWithinTheDeclaredRelativeError) {
  double worst = 0;
  for (std::uint32_t bits = 0; bits < std::bit_cast<std::uint32_t>(86.5F); bits += 64 * 10) {
    const float x = -std::bit_cast<float>(bits);
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(softmax_exp(x)) - exact) / exact);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_GT(worst, 1e-8) << "nothing was compared";
}

TEST(SoftmaxExp, KeepsTheSpecialValues) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(softmax_exp(0.0F), 1.0F);
  EXPECT_EQ(softmax_exp(-infinity), 0.0F);
  EXPECT_EQ(softmax_exp(-100.0F), 0.0F);
  EXPECT_EQ(softmax_exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(softmax_exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_NEAR(softmax_exp(88.0F) / std::exp(88.0F), 1.0F, 1e-5F);
}

}  // namespace
}  // namespace attest
