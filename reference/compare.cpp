#include "reference/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "reference/oracles.hpp"

namespace attest {
namespace {

bool always(const Comparison&) { return true; }
bool is_statistical(const Comparison& c) { return c.z_limit() != nullptr; }
bool returns_lse(const Comparison& c) { return !c.got.lse.empty(); }

constexpr Oracle oracles[] = {
    {"rows", "every row is written, left alone or zero as it must be, and no value is NaN", always,
     judge_rows},
    {"hard", "no element is further off than the worst case of the declared roundings", always,
     judge_hard},
    {"z", "no row is further off than independent roundings leave it", is_statistical, judge_z},
    {"gain", "no head, row or output is systematically too small or too large", is_statistical,
     judge_gain},
    {"lse", "the log-sum-exp is within its worst case", returns_lse, judge_lse},
};

std::string shape_error_of(const Expected& expected, const Output& got) {
  const auto per_head = static_cast<std::size_t>(got.rows * got.heads);
  std::ostringstream os;
  if (got.rows < expected.rows || got.heads != expected.heads || got.dim != expected.dim) {
    os << "the output is (" << got.rows << ", " << got.heads << ", " << got.dim
       << "), the step needs (" << expected.rows << ", " << expected.heads << ", " << expected.dim
       << ")";
  } else if (got.values.size() != per_head * static_cast<std::size_t>(got.dim) ||
             got.untouched.size() != per_head) {
    os << "the output holds " << got.values.size() << " values and " << got.untouched.size()
       << " row marks for " << per_head << " rows of " << got.dim;
  } else if (!got.lse.empty() && got.lse.size() != per_head) {
    os << "lse holds " << got.lse.size() << " values for " << per_head << " rows";
  }
  return os.str();
}

}  // namespace

std::span<const Oracle> all_oracles() { return oracles; }

Comparison::Comparison(const Attended& meaning_of, const Expected& expected_of,
                       const Output& got_of, const NumericsProfile& profile_of,
                       const TensorSource& source)
    : meaning(meaning_of),
      expected(expected_of),
      got(got_of),
      profile(profile_of),
      recipe(name(source.recipe())),
      errors(error_model(profile_of, source.problem().model, expected_of)),
      shape_error(shape_error_of(expected_of, got_of)) {
  if (!shape_error.empty()) return;
  const auto rows = std::min(meaning.rows.size(), expected.computed.size());
  for (std::size_t r = 0; r < rows; ++r) {
    if (meaning.rows[r].expect == RowExpectation::value && expected.computed[r]) {
      value_rows.push_back(static_cast<std::int64_t>(r));
    }
  }
}

const double* Comparison::z_limit() const {
  const auto at = profile.z_limit.find(std::string(recipe));
  return at == profile.z_limit.end() ? nullptr : &at->second;
}

std::string Comparison::place(std::int64_t row, std::int64_t head, std::int64_t element) const {
  std::ostringstream os;
  if (row >= 0) os << "row " << row;
  if (head >= 0) os << (row >= 0 ? " " : "") << "head " << head;
  if (element >= 0) os << " element " << element;
  if (row >= 0 && static_cast<std::size_t>(row) < meaning.rows.size()) {
    const AttendedRow& r = meaning.rows[static_cast<std::size_t>(row)];
    if (r.request >= 0) os << " (request " << r.request << ", token " << r.token << ")";
  }
  return os.str();
}

bool Tally::see(double measure, double limit, std::int64_t row, std::int64_t head,
                std::int64_t element) {
  ++so_far_.compared;
  const bool passed = measure <= limit;  // false for NaN
  if (!passed) ++so_far_.failures;
  double ratio = measure == 0 ? 0 : measure / limit;
  if (std::isnan(ratio) || (!passed && ratio <= 1)) ratio = std::numeric_limits<double>::infinity();
  if (so_far_.compared > 1 && ratio <= so_far_.worst) return false;
  so_far_.worst = ratio;
  so_far_.row = row;
  so_far_.head = head;
  so_far_.element = element;
  return true;
}

OracleResult Tally::result(std::string detail) const {
  OracleResult result = so_far_;
  result.passed = result.compared > 0 && result.failures == 0;
  if (result.compared == 0) {
    result.detail = "nothing was compared";
  } else if (!result.passed) {
    result.detail = std::move(detail);
  }
  return result;
}

std::vector<OracleResult> compare(const Attended& meaning, const Expected& expected,
                                  const Output& got, const NumericsProfile& profile,
                                  const TensorSource& source) {
  const Comparison comparison(meaning, expected, got, profile, source);
  std::vector<OracleResult> results;
  for (const Oracle& oracle : oracles) {
    if (!oracle.applies(comparison)) continue;
    OracleResult& result = results.emplace_back(oracle.judge(comparison));
    result.oracle = oracle.name;
    if (!comparison.shape_error.empty()) {
      result.passed = false;
      result.detail = comparison.shape_error;
    }
  }
  return results;
}

bool all_passed(const std::vector<OracleResult>& results) {
  return !results.empty() && std::all_of(results.begin(), results.end(),
                                         [](const OracleResult& r) { return r.passed; });
}

}  // namespace attest
