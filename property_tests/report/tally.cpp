#include "property_tests/report/tally.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "property_tests/report/by_count.hpp"
#include "property_tests/report/console.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

/// NaN is worse than every number and stays.
bool is_worse(double value, double worst) {
  return !std::isnan(worst) && (std::isnan(value) || value > worst);
}

}  // namespace

void BackendTally::add(const CaseResult& result) {
  const Judgement& judgement = result.judgement;
  if (says_nothing(result)) {
    ++found_silent;
    return;
  }
  if (result.found) {
    ++found;
    found_failed += is_failure(judgement.verdict) ? 1 : 0;
  }
  if (!judgement.engine.empty()) engine = judgement.engine;
  if (!result.known.empty()) {
    ++known;
    for (const std::string& feature : result.features) ++features[feature];
    return;
  }
  ++verdicts[static_cast<std::size_t>(judgement.verdict)];
  if (is_worse(judgement.worst_over_bound, worst_over_bound)) {
    worst_over_bound = judgement.worst_over_bound;
    worst_case = result.name;
  }
  if (is_worse(judgement.worst_z, worst_z)) worst_z = judgement.worst_z;
  for (const std::string& feature : result.features) ++features[feature];
  if (is_failure(judgement.verdict)) ++failure_kinds[failure_kind(judgement)];
}

void BackendTally::judges_nothing(Verdict verdict, std::string why) {
  ++verdicts[static_cast<std::size_t>(verdict)];
  without_a_case = true;
  note = std::move(why);
}

std::int64_t BackendTally::cases() const {
  return std::accumulate(verdicts.begin(), verdicts.end(), known) - (without_a_case ? 1 : 0);
}

std::int64_t BackendTally::failed() const {
  return count(Verdict::mismatch) + count(Verdict::rejected) + count(Verdict::crashed) +
         count(Verdict::hung);
}

int exit_code(std::span<const BackendTally> tallies) {
  std::vector<Verdict> seen;
  for (const BackendTally& tally : tallies) {
    for (const Verdict verdict : all_verdicts) {
      if (tally.count(verdict) > 0) seen.push_back(verdict);
    }
  }
  const bool known = std::any_of(tallies.begin(), tallies.end(),
                                 [](const BackendTally& tally) { return tally.known > 0; });
  return seen.empty() && known ? 0 : exit_code(std::span<const Verdict>(seen));
}

std::string tally_table(std::span<const BackendTally> tallies, const Console& console) {
  const auto shown = [&](Verdict verdict) {
    if (verdict != Verdict::unavailable && verdict != Verdict::crashed && verdict != Verdict::hung)
      return true;
    return std::any_of(tallies.begin(), tallies.end(),
                       [&](const BackendTally& tally) { return tally.count(verdict) > 0; });
  };
  using enum TextTable::Align;
  std::vector<TextTable::Column> columns = {{"backend", left}, {"cases", right}};
  for (const Verdict verdict : all_verdicts) {
    if (shown(verdict)) columns.push_back({std::string(name(verdict)), right});
  }
  const bool any_found = std::any_of(tallies.begin(), tallies.end(),
                                     [](const BackendTally& tally) { return tally.found > 0; });
  if (any_found) columns.push_back({"found", right});
  const bool any_known = std::any_of(tallies.begin(), tallies.end(),
                                     [](const BackendTally& tally) { return tally.known > 0; });
  if (any_known) columns.push_back({"known", right});
  for (const char* title : {"time", "cases/s", "error/bound", "z/limit"})
    columns.push_back({title, right});
  TextTable table(columns);
  for (const BackendTally& tally : tallies) {
    // What was only offered and could not run has its reason below and no numbers.
    if (tally.cases() == 0 && tally.count(Verdict::unavailable) == 0) continue;
    std::vector<std::string> row = {tally.backend, std::to_string(tally.cases())};
    for (const Verdict verdict : all_verdicts) {
      if (!shown(verdict)) continue;
      const std::string number = std::to_string(tally.count(verdict));
      row.push_back(tally.count(verdict) > 0 ? console.as(verdict, number) : number);
    }
    if (any_found) row.push_back(std::to_string(tally.found));
    if (any_known) row.push_back(std::to_string(tally.known));
    const bool ran = tally.cases() > 0;
    const auto cases = static_cast<double>(tally.cases());
    row.push_back(ran ? duration(tally.seconds) : "-");
    row.push_back(ran && tally.seconds > 0 ? short_number(cases / tally.seconds) : "-");
    row.push_back(ran ? short_number(tally.worst_over_bound) : "-");
    row.push_back(ran ? short_number(tally.worst_z) : "-");
    table.add(std::move(row));
  }
  std::string text = table.str();
  for (const BackendTally& tally : tallies) {
    if (!tally.note.empty()) text += tally.backend + ": " + tally.note + "\n";
  }
  return text;
}

namespace {

/// The features of some cases under one heading.
struct Coverage {
  std::string of;
  std::int64_t cases = 0;
  std::map<std::string, std::int64_t> features = {};

  void add(const BackendTally& tally) {
    cases += tally.cases();
    for (const auto& [feature, count] : tally.features) features[feature] += count;
  }
};

std::string coverage_text(const Coverage& coverage) {
  constexpr std::size_t columns = 100;
  std::string text;
  const auto features = by_count(coverage.features);
  std::string line = "coverage  " + coverage.of + ":";
  for (std::size_t i = 0; i < features.size(); ++i) {
    std::string word = " " + features[i].first + " ";
    word += percent(static_cast<double>(features[i].second), static_cast<double>(coverage.cases));
    if (i + 1 < features.size()) word += ",";
    if (line.size() + word.size() > columns) {
      text += line + "\n";
      line = "         ";
    }
    line += word;
  }
  return text + line + "\n";
}

}  // namespace

std::string coverage_lines(std::span<const BackendTally> tallies) {
  constexpr std::size_t most_in_full = 3;
  std::vector<Coverage> each;
  Coverage all;
  for (const BackendTally& tally : tallies) {
    if (tally.cases() == 0) continue;
    each.push_back({tally.backend});
    each.back().add(tally);
    all.add(tally);
  }
  if (each.size() > most_in_full) {
    all.of = "all " + std::to_string(each.size()) + " backends";
    each = {all};
  }
  std::string text;
  for (const Coverage& one : each) text += coverage_text(one);
  return text;
}

}  // namespace attest
