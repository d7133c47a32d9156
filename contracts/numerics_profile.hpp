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
  /// P is rounded to q's dtype instead where that is f32 (not at all), f16 or bf16.
  bool p_follows_q_dtype = false;
  bool denominator_sums_rounded_p = false;
  /// The running maximum begins at the sink, so P is small, and its format may run out of normal
  /// numbers, where the sink is above all scores. Else the sink joins the sums of finished keys.
  bool maximum_starts_at_sink = false;
  double exp_relative_error = 1e-6;  ///< of one exp, rescale factors included
  bool q_scaled_in_input_dtype =
      false;                        ///< q * scale is rounded to q's dtype; the reference replays it
  bool denormals_are_zero = false;  ///< inputs
  int kv_splits = 1;  ///< partial results merged by log-sum-exp; adds one rounding each

  /// Limit of the row measure z per recipe name; a recipe that is absent is not judged by z.
  std::map<std::string, double> z_limit;

  /// What P is rounded to in a call whose q has `q_dtype`.
  Dtype p_dtype_for(Dtype q_dtype) const {
    return p_follows_q_dtype && !is_fp8(q_dtype) ? q_dtype : p_dtype;
  }
  bool operator==(const NumericsProfile&) const = default;
};

}  // namespace attest
