#pragma once

#include <cstdint>
#include <span>

#include "reference/attention.hpp"
#include "reference/error_bound.hpp"

namespace attest {

/// How far one (row, head) of an output lies from the exact one, in units of the error that
/// independent roundings leave. Derived in row_statistics.cpp.
struct RowStatistics {
  /// Root of sum (err_i / sigma_i)^2 / (v_head_dim + 8); infinity when an exact element is off.
  double z = 0;
  double gain_error = 0;     ///< weighted regression of got on out, minus 1
  double gain_variance = 0;  ///< of that estimate for a correct kernel
  double gain_bias = 0;      ///< what pooling rows does not average out of it
  bool has_gain = false;     ///< the exact output is not all zero
};

/// \param got  v_head_dim elements, finite.
/// \pre expected was computed with envelopes.
RowStatistics row_statistics(const ErrorModel& model, const Expected& expected, std::int64_t row,
                             std::int64_t head, std::span<const float> got);

/// Estimates of one gain, pooled by inverse variance.
class GainEstimate {
 public:
  void add(const RowStatistics& row);
  bool empty() const { return weight_ == 0; }
  double error() const { return errors_ / weight_; }
  /// Largest |error| of a correct kernel: six standard deviations and the bias.
  double limit() const;

 private:
  double weight_ = 0;
  double errors_ = 0;
  double biases_ = 0;
};

}  // namespace attest
