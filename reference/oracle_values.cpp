// The oracles that hold for every recipe: rows, hard, lse.

#include <cmath>
#include <limits>
#include <sstream>

#include "reference/oracles.hpp"

namespace attest {
namespace {

/// What is wrong with one head of a row, or nothing.
std::string row_fault(const Comparison& c, RowExpectation expect, std::int64_t row,
                      std::int64_t head) {
  const bool untouched = c.got.untouched[static_cast<std::size_t>(row * c.got.heads + head)] != 0;
  if (expect == RowExpectation::untouched) {
    return untouched ? "" : "was written, must be left alone";
  }
  if (untouched) return "was never written";
  for (std::int64_t d = 0; d < c.got.dim; ++d) {
    const float x = c.got.values[c.got.index(row, head, d)];
    const bool wrong = std::isnan(x) || (expect == RowExpectation::zero && x != 0);
    if (!wrong) continue;
    std::ostringstream os;
    os << "element " << d << " is ";
    std::isnan(x) ? os << "NaN" : os << x << ", must be 0";
    return os.str();
  }
  return "";
}

std::string element_detail(const Comparison& c, std::int64_t row, std::int64_t head,
                           std::int64_t element, double bound) {
  std::ostringstream os;
  os.precision(6);
  os << c.place(row, head, element) << ": got " << c.got.values[c.got.index(row, head, element)]
     << ", expected " << c.expected.out[c.expected.index(row, head, element)] << ", bound "
     << bound;
  return os.str();
}

}  // namespace

OracleResult judge_rows(const Comparison& c) {
  Tally tally;
  std::string worst;
  if (!c.shape_error.empty()) return tally.result("");
  for (std::size_t r = 0; r < c.meaning.rows.size(); ++r) {
    const RowExpectation expect = c.meaning.rows[r].expect;
    if (expect == RowExpectation::any) continue;
    const auto row = static_cast<std::int64_t>(r);
    for (std::int64_t head = 0; head < c.got.heads; ++head) {
      const std::string fault = row_fault(c, expect, row, head);
      const double measure = fault.empty() ? 0 : std::numeric_limits<double>::infinity();
      if (tally.see(measure, 0, row, head)) worst = c.place(row, head) + ": " + fault;
    }
  }
  return tally.result(worst);
}

OracleResult judge_hard(const Comparison& c) {
  Tally tally;
  double worst_bound = 0;
  for (const std::int64_t row : c.value_rows) {
    for (std::int64_t head = 0; head < c.got.heads; ++head) {
      const RowBound bound = row_bound(c.errors, c.expected, row, head);
      const std::size_t first = c.expected.index(row, head, 0);
      const std::size_t first_got = c.got.index(row, head, 0);
      for (std::int64_t d = 0; d < c.got.dim; ++d) {
        const auto i = static_cast<std::size_t>(d);
        const double expected = c.expected.out[first + i];
        const double limit = bound.of(c.expected.abs_v[first + i], expected);
        const double error = std::abs(static_cast<double>(c.got.values[first_got + i]) - expected);
        if (tally.see(error, limit, row, head, d)) worst_bound = limit;
      }
    }
  }
  OracleResult result = tally.result("");
  if (result.failures > 0) {
    result.detail = element_detail(c, result.row, result.head, result.element, worst_bound);
  }
  return result;
}

OracleResult judge_lse(const Comparison& c) {
  Tally tally;
  std::string worst;
  for (const std::int64_t row : c.value_rows) {
    for (std::int64_t head = 0; head < c.got.heads; ++head) {
      const double expected = c.expected.lse[c.expected.row_index(row, head)];
      const double got = c.got.lse[static_cast<std::size_t>(row * c.got.heads + head)];
      const double limit = row_bound(c.errors, c.expected, row, head).lse;
      const double error = got == expected ? 0 : std::abs(got - expected);  // both may be -inf
      if (!tally.see(error, limit, row, head)) continue;
      std::ostringstream os;
      os.precision(8);
      os << c.place(row, head) << ": lse got " << got << ", expected " << expected << ", bound "
         << limit;
      worst = os.str();
    }
  }
  return tally.result(worst);
}

}  // namespace attest
