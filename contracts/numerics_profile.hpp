#pragma once

#include <map>
#include <string>

#include "contracts/dtype.hpp"

namespace attest {

/// How a correct kernel rounds: declared per backend and engine, versioned, never widened to make a
/// test green. The error bounds are derived from it (reference/error_bound.hpp).
struct NumericsProfile {
  std::string implementation;  ///< "scalar.unified"
  std::string version;         ///< kernel version the profile was calibrated on
  std::string engine;          ///< "cpu"
  int revision = 1;            ///< raised by a recorded clean campaign and a CHANGELOG line

  Dtype accumulate = Dtype::f32;  ///< QK and PV sums
  Dtype p_dtype = Dtype::bf16;    ///< probabilities are rounded to this before PV
  bool denominator_sums_rounded_p = false;
  double exp_relative_error = 1e-6;  ///< of one exp, rescale factors included
  bool q_scaled_in_input_dtype =
      false;                        ///< q * scale is rounded to q's dtype; the reference replays it
  bool denormals_are_zero = false;  ///< inputs
  int kv_splits = 1;  ///< partial results merged by log-sum-exp; adds one rounding each

  /// Limit of the row measure z per recipe name; a recipe that is absent is not judged by z.
  std::map<std::string, double> z_limit;
  bool operator==(const NumericsProfile&) const = default;
};

}  // namespace attest
