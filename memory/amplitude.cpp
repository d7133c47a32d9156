#include "memory/amplitude.hpp"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

/// Smallest normal and largest finite value.
struct Limits {
  double smallest;
  double largest;
};

Limits limits_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {0x1p-14, 32768};
    case Dtype::fp8_e4m3fn:
      return {0x1p-6, 448};
    case Dtype::fp8_e4m3fnuz:
      return {0x1p-7, 240};
    default:
      return {0x1p-100, 0x1p100};
  }
}

double clamped(Dtype dtype, double value) {
  if (!std::isfinite(value)) return 1;
  const Limits limits = limits_of(dtype);
  return std::clamp(value, limits.smallest, limits.largest);
}

}  // namespace

double natural_log(double x) {
  int exponent = 0;
  const double m = std::frexp(x, &exponent) * 2;  // [1, 2)
  // ln m = 2 atanh t; t <= 1/3, so the first dropped term is below 1.2e-5.
  const double t = (m - 1) / (m + 1);
  const double t2 = t * t;
  const double series = 1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 / 7));
  return 2 * t * series + (exponent - 1) * 0.69314718055994531;
}

double rough_tanh(double x) {
  if (x >= 3) return 1;
  const double x2 = x * x;
  return x * (27 + x2) / (27 + 9 * x2);  // a Pade form
}

double logit_per_element(const Model& model) {
  return std::fabs(model.softmax_scale) * model.q_descale.value_or(1) * model.k_descale.value_or(1);
}

float representable(Dtype dtype, double value) {
  int exponent = 0;
  const double m = std::frexp(clamped(dtype, value), &exponent);  // [0.5, 1)
  const double rounded = std::ldexp(std::nearbyint(m * 16), exponent - 4);
  return static_cast<float>(std::min(rounded, limits_of(dtype).largest));
}

float nearest(Dtype dtype, double value) {
  return decode(dtype, encode(dtype, static_cast<float>(clamped(dtype, value))));
}

float sign_of_scale(const Model& model) { return model.softmax_scale < 0 ? -1.0F : 1.0F; }

}  // namespace attest
