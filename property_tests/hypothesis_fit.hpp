#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/diagnose.hpp"

namespace attest {

/// Rows a hypothesis is held against: the failing ones, then the first and last row of each
/// request, since it must explain what is right as well as what is wrong; with `all`, then the
/// rest. At least one and at most `most`, as many as `hypotheses` evaluations may cost in about two
/// seconds.
std::vector<std::int64_t> rows_to_explain(const Failure& failure, std::size_t hypotheses,
                                          std::size_t most, bool all = false);

/// How well a changed meaning computes the output.
struct Fit {
  std::string id, says;  ///< of the hypothesis or misreading; empty: of none
  double worst = 0;      ///< largest error over the bound of the rows
  Expected expected;     ///< of the rows
};

/// Nothing when an oracle refuses a row. A row that reads slots which hold nothing must have come
/// out poisoned, one that the meaning leaves untouched must be so; neither is computed.
std::optional<Fit> fit(const Failure& failure, Attended meaning,
                       const std::vector<std::int64_t>& rows);

/// The same of a hypothesis, where it changes anything.
std::optional<Fit> fit(const Failure& failure, const Hypothesis& hypothesis,
                       const std::vector<std::int64_t>& rows);

/// Whether a row sees a key that lies nowhere in the pool: given back, or past the last one.
bool reads_dead_keys(const TensorSource& source, Attended meaning);

/// The hypotheses and misreadings that fit, best first. Near ties are settled on more rows, then by
/// the order of the lists: hypotheses, and the more specific, first.
struct Ranking {
  std::vector<Fit> fits;
  std::size_t rows = 0;  ///< that all of them explain
};
Ranking rank_hypotheses(const Failure& failure, const std::vector<Hypothesis>& hypotheses);

/// Whether two fits expect the same numbers: on these rows they are one mistake.
bool same_numbers(const Fit& a, const Fit& b);

/// Two runs that differ in forbidden bytes alone gave different output.
bool depends_on_poison(const Failure& failure);

}  // namespace attest
