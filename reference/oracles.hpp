#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/compare.hpp"
#include "reference/error_bound.hpp"

namespace attest {

/// One output beside its expectation, as every oracle sees it.
struct Comparison {
  Comparison(const Attended& meaning, const Expected& expected, const Output& got,
             const NumericsProfile& profile, const TensorSource& source);

  const Attended& meaning;
  const Expected& expected;
  const Output& got;
  const NumericsProfile& profile;
  std::string_view recipe;
  ErrorModel errors;
  std::string shape_error;               ///< why nothing can be compared; empty = shapes agree
  std::vector<std::int64_t> value_rows;  ///< rows whose values are judged

  /// The limit of z for this recipe, or nothing.
  const double* z_limit() const;
  /// "row 5 head 2 element 17 (request 1, token 2)"; head and element are left out when < 0.
  std::string place(std::int64_t row, std::int64_t head = -1, std::int64_t element = -1) const;
};

/// An oracle, when it applies, and how it judges.
struct Oracle {
  std::string_view name;
  std::string_view says;  ///< one sentence
  bool (*applies)(const Comparison&);
  OracleResult (*judge)(const Comparison&);
};

/// The one list of oracles, in report order.
std::span<const Oracle> all_oracles();

OracleResult judge_rows(const Comparison& c);
OracleResult judge_hard(const Comparison& c);
OracleResult judge_z(const Comparison& c);
OracleResult judge_gain(const Comparison& c);
OracleResult judge_lse(const Comparison& c);

/// Collects the measures of one oracle; the largest is remembered with its place.
class Tally {
 public:
  /// `measure` of a place against `limit`. Anything that is not <= limit, NaN too, is a failure.
  /// \returns whether this is the worst place so far.
  bool see(double measure, double limit, std::int64_t row, std::int64_t head = -1,
           std::int64_t element = -1);
  /// The result so far; `detail` describes the worst place and is kept when something failed.
  OracleResult result(std::string detail) const;

 private:
  OracleResult so_far_;
};

}  // namespace attest
