#pragma once

#include <span>

namespace attest {

/// What exp_minus found on its way.
struct PowerSums {
  double sum = 0;      ///< sum of the results
  double squares = 0;  ///< sum of their squares
};

/// In place x = exp(x - shift), vectorised: relative error at most 4e-16 plus that of the
/// difference's rounding. \pre x - shift <= 0 and finite
PowerSums exp_minus(std::span<double> x, double shift);

/// In place x = cap * tanh(x / cap). The error is at most a few 1e-16 of the *score* for small
/// ones, and of `cap` for large ones: nothing cancels.
void softcap_scores(std::span<double> x, double cap);

}  // namespace attest
