#include "property_tests/settle_ties.hpp"

#include <algorithm>
#include <string_view>
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

/// What a fit is of: one of the two.
struct Mistake {
  const Hypothesis* hypothesis = nullptr;
  const Misreading* misreading = nullptr;
};

template <class List>
const typename List::value_type* named(const List& list, std::string_view id) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& m) { return m.id == id; });
  return at == list.end() ? nullptr : &*at;
}

std::vector<Mistake> mistakes_of(const std::vector<Fit>& fits,
                                 const std::vector<Hypothesis>& hypotheses) {
  std::vector<Mistake> mistakes;
  mistakes.reserve(fits.size());
  for (const Fit& fit : fits) {
    const Hypothesis* const hypothesis = named(hypotheses, fit.id);
    mistakes.push_back(
        {hypothesis, hypothesis != nullptr ? nullptr : named(all_misreadings(), fit.id)});
  }
  return mistakes;
}

/// For each of them, whether the output is not what it would compute.
std::vector<bool> against(const Failure& look, const std::vector<Mistake>& mistakes) {
  const std::vector<std::int64_t> rows = rows_to_explain(look, mistakes.size(), rows_of_a_look);
  std::vector<bool> words(mistakes.size(), false);
  if (rows.empty()) return words;
  MisreadSearch search(look, rows);
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    const auto& [hypothesis, misreading] = mistakes[i];
    words[i] = hypothesis != nullptr ? speaks_against(look, *hypothesis, rows)
                                     : misreading != nullptr && search.contradicts(*misreading);
  }
  return words;
}

}  // namespace

void settle_ties(Ranking& ranking, const std::vector<Hypothesis>& hypotheses,
                 const FurtherOutputs& further) {
  if (ranking.fits.size() < 2 || !further) return;
  const std::vector<Mistake> mistakes = mistakes_of(ranking.fits, hypotheses);
  std::vector<int> counts(mistakes.size());
  int wrong = 0;
  further([&](const Failure& look) {
    if (all_passed(look.oracles)) return true;
    const std::vector<bool> words = against(look, mistakes);
    const bool all = std::find(words.begin(), words.end(), false) == words.end();
    for (std::size_t i = 0; !all && i < words.size(); ++i) counts[i] += words[i] ? 1 : 0;
    return ++wrong < most_wrong_outputs;
  });
  const int least = *std::min_element(counts.begin(), counts.end());
  std::vector<Fit> kept;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // Hypotheses are held against whole rows by all oracles, misreadings at a few places.
    const int allowed = mistakes[i].hypothesis != nullptr ? wrong / 3 : 0;
    if (counts[i] <= least + allowed) kept.push_back(std::move(ranking.fits[i]));
  }
  ranking.fits = std::move(kept);
}

}  // namespace attest
