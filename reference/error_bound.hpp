#pragma once

#include <cmath>
#include <cstdint>

#include "contracts/numerics_profile.hpp"
#include "contracts/problem.hpp"
#include "reference/attention.hpp"

namespace attest {

/// The roundings of a correct kernel, from its profile and the model's dtypes. Unit roundoffs are
/// relative; "tiny" is the absolute error where a format runs out of normal numbers.
struct ErrorModel {
  double accumulate = 0;    ///< unit roundoff of the sums
  double exp = 0;           ///< relative error of one exp
  double p = 0;             ///< unit roundoff of P
  bool sink_first = false;  ///< NumericsProfile::maximum_starts_at_sink
  double p_tiny = 0;        ///< absolute error of a P below the normal range, or flushed by exp
  double out = 0;           ///< unit roundoff of the output
  double out_tiny = 0;      ///< absolute error of an output below the normal range
  double q = 0;            ///< unit roundoff of q * scale where reference and kernel disagree on it
  double score_flush = 0;  ///< change of a q or k element that is read as zero
  double v_flush = 0;      ///< the same of v, descaled
  bool rounded_denominator = false;  ///< the denominator sums rounded P
  std::int64_t splits = 1;
  double head_dim = 1;
  double softcap = 0;
};

ErrorModel error_model(const NumericsProfile& profile, const Model& model,
                       const Expected& expected);

/// Worst case of one (row, head): element i errs by at most of(sum_j w_j |v_ji|, o_i).
struct RowBound {
  double weights = 0;   ///< times sum w |v|
  double common = 0;    ///< times |o|
  double floor = 0;     ///< absolute, before the output is rounded
  double out = 0;       ///< relative error of the output's rounding
  double out_tiny = 0;  ///< absolute error of the same
  double ceiling = 0;   ///< no correct output is further from 0 than this
  double lse = 0;       ///< of the log-sum-exp

  double of(double abs_v, double o) const {
    const double before = weights * abs_v + common * std::abs(o) + floor;
    const double bound = before + out * (std::abs(o) + before) + out_tiny;
    const double trivial = std::abs(o) + ceiling;
    return bound < trivial ? bound : trivial;
  }
};

/// \pre the row is computed; NaN coefficients where the reference itself is NaN.
RowBound row_bound(const ErrorModel& model, const Expected& expected, std::int64_t row,
                   std::int64_t head);

/// The absolute error of one key's weight where P, or the factor that joins a sink to the sums of
/// finished keys, is below the normal range. Derived in error_bound.cpp, step 3.
double tiny_weight(const ErrorModel& model, const Expected& expected, std::size_t row_index);

/// Bound on the error of one score of the row. Derived in error_bound.cpp.
double score_error(const ErrorModel& model, const Expected& expected, std::int64_t row,
                   std::int64_t head);

/// Longest chain of dependent additions over `keys` keys. The profile's split count is the most a
/// kernel uses; it may use one.
double addition_chain(const ErrorModel& model, std::int64_t keys);

}  // namespace attest
