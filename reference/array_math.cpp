#include "reference/array_math.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstddef>

namespace attest {
namespace {

using Array = Eigen::ArrayXd;

// Taylor coefficients of tanh(y) / y in y^2. Below |y| = 0.25 the first one left out is less than
// 1e-16 of the sum.
constexpr std::array<double, 10> tanh_series = {1.0,
                                                -1.0 / 3,
                                                2.0 / 15,
                                                -17.0 / 315,
                                                62.0 / 2835,
                                                -1382.0 / 155925,
                                                21844.0 / 6081075,
                                                -929569.0 / 638512875,
                                                6404582.0 / 10854718875.0,
                                                -443861162.0 / 1856156927625.0};
constexpr double series_below = 0.25;
constexpr Eigen::Index piece = 256;  // temporaries stay in the first-level cache

}  // namespace

PowerSums exp_minus(std::span<double> x, double shift) {
  Eigen::Map<Array> values(x.data(), static_cast<Eigen::Index>(x.size()));
  values = (values - shift).exp();
  return {values.sum(), values.square().sum()};
}

void softcap_scores(std::span<double> x, double cap) {
  const auto n = static_cast<Eigen::Index>(x.size());
  for (Eigen::Index at = 0; at < n; at += piece) {
    Eigen::Map<Array> score(x.data() + at, std::min(piece, n - at));
    const Array y = score / cap;
    const Array y2 = y.square();
    Array series = Array::Constant(y.size(), tanh_series.back());
    for (std::size_t i = tanh_series.size() - 1; i-- > 0;) series = series * y2 + tanh_series[i];
    // tanh |y| = (1 - e) / (1 + e) with e = exp(-2 |y|): cannot overflow.
    const Array e = (-2 * y.abs()).exp();
    const Array large = y.sign() * (1 - e) / (1 + e);
    score = cap * (y.abs() < series_below).select(y * series, large);
  }
}

}  // namespace attest
