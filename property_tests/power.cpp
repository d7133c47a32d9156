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

/// Some (row, head) of recall data looks for the newest key, and some for one past the first page
/// where any row sees one.
bool recall_reaches_the_edges(const TensorSource& source, const Attended& meaning) {
  bool newest = false;
  bool past_first_page = false;
  for (const Plant& plant : source.plants()) {
    if (plant.decoy || plant.row < 0) continue;
    const AttendedRow& row = meaning.rows[static_cast<std::size_t>(plant.row)];
    newest = newest || plant.key == newest_key(row);
    past_first_page = past_first_page || plant.key.position >= source.problem().pool.page_size;
  }
  const bool needs_newest = std::any_of(meaning.rows.begin(), meaning.rows.end(),
                                        [](const AttendedRow& row) { return row.visible() > 1; });
  const bool needs_page = source.problem().max_kv_len() > source.problem().pool.page_size;
  return (newest || !needs_newest) && (past_first_page || !needs_page);
}

bool features_show_the_edges(const TensorSource& source, const Attended& meaning) {
  NumericsProfile usual;
  usual.z_limit = {{"features", 3.0}};
  ReferenceOptions options;
  options.threads = 1;
  const Expected expected = reference_attention(meaning, source, options);
  return !why_untrusted({meaning, expected, usual, source});
}

}  // namespace

Recipe recipe_with_power(const Case& c) {
  const bool peaked = c.recipe == Recipe::features && c.problem.model.softcap > 0;
  if (c.recipe != Recipe::recall && !peaked) return c.recipe;
  const TensorSource source(c.problem, c.recipe, c.seed, c.poison);
  const Attended meaning = attended(c.problem);
  const bool powerful =
      peaked ? features_show_the_edges(source, meaning) : recall_reaches_the_edges(source, meaning);
  return powerful ? c.recipe : Recipe::needle;
}

}  // namespace attest
