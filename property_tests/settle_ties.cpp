#include "property_tests/settle_ties.hpp"

#include <algorithm>
#include <utility>

#include "property_tests/misread/misread_fit.hpp"

namespace attest {
namespace {

constexpr std::size_t rows_of_a_look = 6;
constexpr int most_wrong_outputs = 8;

bool speaks_against(const Failure& look, const Hypothesis& hypothesis,
                    const std::vector<std::int64_t>& rows) {
  Attended meaning = look.meaning;
  if (!hypothesis.apply(look.source.problem(), meaning)) return true;
  if (reads_dead_keys(look.source, meaning)) return false;  // of these it says nothing
  return !fit(look, hypothesis, rows);
}

/// For each fit, whether the output is not what the mistake would compute.
std::vector<bool> against(const Failure& look, const std::vector<Fit>& fits,
                          const std::vector<Hypothesis>& hypotheses) {
  const std::vector<std::int64_t> rows = rows_to_explain(look, fits.size(), rows_of_a_look);
  std::vector<bool> words(fits.size(), false);
  if (rows.empty()) return words;
  MisreadSearch search(look, rows);
  const std::vector<Misreading>& misreadings = all_misreadings();
  for (std::size_t i = 0; i < fits.size(); ++i) {
    const auto named = [&](const auto& one) { return one.id == fits[i].id; };
    const auto hypothesis = std::find_if(hypotheses.begin(), hypotheses.end(), named);
    if (hypothesis != hypotheses.end()) {
      words[i] = speaks_against(look, *hypothesis, rows);
      continue;
    }
    const auto misreading = std::find_if(misreadings.begin(), misreadings.end(), named);
    words[i] = misreading != misreadings.end() && search.contradicts(*misreading);
  }
  return words;
}

}  // namespace

void settle_ties(Ranking& ranking, const std::vector<Hypothesis>& hypotheses,
                 const FurtherOutputs& further) {
  if (ranking.fits.size() < 2 || !further) return;
  std::vector<int> counts(ranking.fits.size());
  int wrong = 0;
  further([&](const Failure& look) {
    if (all_passed(look.oracles)) return true;
    const std::vector<bool> words = against(look, ranking.fits, hypotheses);
    const bool all = std::find(words.begin(), words.end(), false) == words.end();
    for (std::size_t i = 0; !all && i < words.size(); ++i) counts[i] += words[i] ? 1 : 0;
    return ++wrong < most_wrong_outputs;
  });
  const int least = *std::min_element(counts.begin(), counts.end());
  std::vector<Fit> kept;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // Hypotheses are held against whole rows by all oracles, misreadings at a few places.
    const bool is_hypothesis =
        std::any_of(hypotheses.begin(), hypotheses.end(),
                    [&](const auto& h) { return h.id == ranking.fits[i].id; });
    if (counts[i] <= least + (is_hypothesis ? wrong / 3 : 0))
      kept.push_back(std::move(ranking.fits[i]));
  }
  ranking.fits = std::move(kept);
}

}  // namespace attest
