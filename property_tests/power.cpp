#include "property_tests/power.hpp"

#include <algorithm>

#include "property_tests/null_oracles.hpp"
#include "reference/attention.hpp"

namespace attest {
namespace {

bool null_answers_fail(const TensorSource& source, const Attended& meaning) {
  ReferenceOptions options;
  options.threads = 1;
  const Expected expected = reference_attention(meaning, source, options);
  return !why_untrusted({meaning, expected, loosest_profile(), source});
}

bool sees_past(const AttendedRow& row, std::int64_t page) {
  return std::any_of(row.keys.begin(), row.keys.end(), [page](const KeyRun& run) {
    return run.first >= 0 && run.first + run.count > page;
  });
}

/// Rows with a value times heads: the places where a mistake could show. Where some rows see past
/// the first page, only those: in the others, reading no other page is no mistake.
std::int64_t probes(const Case& c) {
  const Attended meaning = attended(c.problem);
  std::int64_t rows = 0;
  std::int64_t past_a_page = 0;
  for (const AttendedRow& row : meaning.rows) {
    if (row.expect != RowExpectation::value) continue;
    ++rows;
    past_a_page += sees_past(row, c.problem.pool.page_size) ? 1 : 0;
  }
  return (past_a_page > 0 ? past_a_page : rows) * meaning.num_q_heads;
}

bool has_power(const Case& c) {
  constexpr std::int64_t few = 96;
  const bool peaked = c.recipe == Recipe::features && c.problem.model.softcap > 0;
  // Large logits have large bounds, and planted keys may lie where no null answer differs.
  const bool weak = peaked || c.recipe == Recipe::shifted || c.recipe == Recipe::recall;
  if (!weak && probes(c) > few) return true;
  return null_answers_fail(TensorSource(c.problem, c.recipe, c.seed, c.poison),
                           attended(c.problem));
}

}  // namespace

NumericsProfile loosest_profile() {
  NumericsProfile loosest;
  loosest.kv_splits = 1024;
  loosest.z_limit = {{"normal", 3.0}, {"features", 3.0}};
  return loosest;
}

void give_power(Case& c) {
  constexpr int attempts = 8;
  for (int i = 0; i < attempts && !has_power(c); ++i) {
    if (i > 0) ++c.seed;
    c.recipe = i % 2 == 0 ? Recipe::needle : Recipe::normal;
  }
}

}  // namespace attest
