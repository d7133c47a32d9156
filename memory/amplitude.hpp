#pragma once

#include <cstdint>

#include "contracts/problem.hpp"

namespace attest {

// The few real numbers of a recipe, computed once per case on the host with + - * /, IEEE square
// roots and scaling by powers of two alone (no other libm, no contraction), so every build finds
// the same ones.

/// ln(x), absolute error below 2e-5. \pre x > 0 and finite.
double natural_log(double x);
/// tanh(x) to 2.4 %. \pre x >= 0.
double rough_tanh(double x);

/// Logit of one element with |q| = |k| = 1, descales included: |scale| * q_descale * k_descale.
double logit_per_element(const Model& model);

/// `value` clamped to what `dtype` holds as a normal number, then rounded to 4 significant bits,
/// which every floating dtype has. Infinity and NaN (a scale of 0) give 1.
float representable(Dtype dtype, double value);

/// `value` clamped the same way and rounded to `dtype` itself.
float nearest(Dtype dtype, double value);

/// +1, or -1 for a negative softmax scale: the sign a q must have to meet a key that points along
/// its pattern.
float sign_of_scale(const Model& model);

}  // namespace attest
