#include "reference/array_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace attest {
namespace {

TEST(ArrayMath, ExpAgreesWithLongDoubleToAFewRoundings) {
  std::vector<double> x;
  for (double v = -700; v <= 0; v += 0.0137) x.push_back(v);
  std::vector<double> y = x;
  const PowerSums sums = exp_minus(y, 0);
  long double sum = 0;
  long double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    ASSERT_LE(std::abs(y[i] - exact), 4e-16L * exact) << "exp(" << x[i] << ")";
    sum += exact;
    squares += exact * exact;
  }
  EXPECT_NEAR(sums.sum, static_cast<double>(sum), 1e-13 * static_cast<double>(sum));
  EXPECT_NEAR(sums.squares, static_cast<double>(squares), 1e-13 * static_cast<double>(squares));
}

TEST(ArrayMath, ExpOfTheShiftItselfIsOne) {
  std::vector<double> x(7, 83.25);
  exp_minus(x, 83.25);
  EXPECT_EQ(x, std::vector<double>(7, 1.0));
}

TEST(ArrayMath, SoftcapAgreesWithLongDouble) {
  for (const double cap : {5.0, 30.0, 1000.0}) {
    std::vector<double> x;
    for (double v = -40 * cap; v <= 40 * cap; v += cap * 0.00313) x.push_back(v);
    for (double v = 1e-9; v < cap; v *= 1.7) x.push_back(v);
    std::vector<double> y = x;
    softcap_scores(y, cap);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double exact = cap * std::tanh(static_cast<long double>(x[i]) / cap);
      ASSERT_LE(std::abs(y[i] - exact), 1e-15L * std::abs(exact)) << x[i] << " capped at " << cap;
    }
  }
}

TEST(ArrayMath, SoftcapOfZeroAndOfHugeScoresIsExact) {
  std::vector<double> x = {0, 1e30, -1e30};
  softcap_scores(x, 30);
  EXPECT_EQ(x, (std::vector<double>{0, 30, -30}));
}

}  // namespace
}  // namespace attest
