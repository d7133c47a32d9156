#include "property_tests/power.hpp"

#include <algorithm>

#include "property_tests/null_oracles.hpp"
#include "reference/attention.hpp"

namespace attest {
namespace {

/// Newest key of a row: its own token, or the last token of its encoder.
ContentKey newest_key(const AttendedRow& row) {
  ContentKey newest = {row.keys.front().sequence, row.keys.front().first};
  for (const KeyRun& run : row.keys) {
    const std::int64_t last = run.first < 0 ? run.first : run.first + run.count - 1;
    if (run.first < 0 || last > newest.position) newest = {run.sequence, last};
  }
  return newest;
}

bool sees_past(const AttendedRow& row, std::int64_t page) {
  bool inside = false;
  bool past = false;
  for (const KeyRun& run : row.keys) {
    inside = inside || (run.first >= 0 && run.first < page);
    past = past || run.first + run.count > page;
  }
  return inside && past;
}

bool null_answers_fail(const TensorSource& source, const Attended& meaning) {
  ReferenceOptions options;
  options.threads = 1;
  const Expected expected = reference_attention(meaning, source, options);
  return !why_untrusted({meaning, expected, loosest_profile(), source});
}

/// Rows with a value times heads: the places where a mistake could show.
std::int64_t probes(const Attended& meaning) {
  const auto rows =
      std::count_if(meaning.rows.begin(), meaning.rows.end(),
                    [](const AttendedRow& row) { return row.expect == RowExpectation::value; });
  return rows * meaning.num_q_heads;
}

bool has_power(const Case& c) {
  constexpr std::int64_t few = 96;
  const Attended meaning = attended(c.problem);
  const bool peaked = c.recipe == Recipe::features && c.problem.model.softcap > 0;
  // Large logits have large bounds, and planted keys may lie where no null answer differs.
  const bool weak = peaked || c.recipe == Recipe::shifted || c.recipe == Recipe::recall;
  if (!weak && probes(meaning) > few) return true;
  return null_answers_fail(TensorSource(c.problem, c.recipe, c.seed, c.poison), meaning);
}

}  // namespace

bool recall_reaches_the_edges(const TensorSource& source, const Attended& meaning) {
  const std::int64_t page = source.problem().pool.page_size;
  const auto judged = [](const AttendedRow& row) { return row.expect == RowExpectation::value; };
  const auto has_others = [&](const AttendedRow& row) { return judged(row) && row.visible() > 1; };
  const auto spans_pages = [&](const AttendedRow& row) {
    return judged(row) && sees_past(row, page);
  };
  bool newest = std::none_of(meaning.rows.begin(), meaning.rows.end(), has_others);
  bool past = std::none_of(meaning.rows.begin(), meaning.rows.end(), spans_pages);
  for (const Plant& plant : source.plants()) {
    if (plant.decoy || plant.row < 0) continue;
    const AttendedRow& row = meaning.rows[static_cast<std::size_t>(plant.row)];
    newest = newest || (has_others(row) && plant.key == newest_key(row));
    past = past || (spans_pages(row) && plant.key.position >= page);
  }
  return newest && past;
}

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
