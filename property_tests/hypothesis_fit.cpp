#include "property_tests/hypothesis_fit.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "contracts/slot_map.hpp"
#include "property_tests/misread/given_back.hpp"
#include "property_tests/misread/misread_fit.hpp"

namespace attest {
namespace {

/// Multiply-adds all hypotheses together may cost: about two seconds.
constexpr std::int64_t budget = 4'000'000'000;
constexpr std::size_t most_rows = 12;
/// Of the hypotheses that are nearly as good as the best one.
constexpr std::size_t most_rows_of_ties = 96;
constexpr double near_tie = 0.8;

bool has_unknown_key(const AttendedRow& row) {
  return std::any_of(row.keys.begin(), row.keys.end(),
                     [](const KeyRun& run) { return run.sequence == unknown_sequence; });
}

/// Keys that lie nowhere in the pool (given back, or behind a request's last one) are unknown: what
/// a kernel reads in their place is nobody's.
class LiveKeys {
 public:
  explicit LiveKeys(const TensorSource& source) {
    for (const auto& [slot, key] : contents_by_slot(source.problem(), source.slots())) {
      positions_[key.sequence].insert(key.position);
    }
    // Tokens that the call brings along need no slot.
    for (const Request& r : source.problem().requests) {
      for (std::int64_t t = r.committed; t < r.kv_len(); ++t) {
        positions_[content_of(r, t).sequence].insert(t);
      }
    }
  }
  void mark(AttendedRow& row) const {
    for (KeyRun& run : row.keys) {
      if (!lives(run)) run.sequence = unknown_sequence;
    }
  }

 private:
  bool lives(const KeyRun& run) const {
    const auto of_sequence = positions_.find(run.sequence);
    if (of_sequence == positions_.end()) return false;
    for (std::int64_t i = 0; i < run.count; ++i) {
      if (!of_sequence->second.contains(run.first + i)) return false;
    }
    return true;
  }
  std::unordered_map<std::int64_t, std::unordered_set<std::int64_t>> positions_;
};

bool has_nan(const Output& got, std::int64_t row) {
  const auto begin = got.values.begin() + static_cast<std::ptrdiff_t>(got.index(row, 0));
  return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(got.heads * got.dim),
                     [](float value) { return std::isnan(value); });
}

/// Which heads of the row nobody wrote.
std::span<const std::uint8_t> untouched_heads(const Output& got, std::int64_t row) {
  return std::span(got.untouched)
      .subspan(static_cast<std::size_t>(row * got.heads), static_cast<std::size_t>(got.heads));
}

constexpr auto nobodys = [](std::uint8_t one) { return one != 0; };

/// Reduces a meaning to the rows to explain; those it leaves no key are zeros.
/// \returns whether any of them has a value.
bool expect_of_rows(Attended& meaning, const std::vector<std::int64_t>& rows) {
  std::vector<RowExpectation> expect(meaning.rows.size(), RowExpectation::any);
  bool any_value = false;
  for (const std::int64_t row : rows) {
    const bool empty = meaning.rows[static_cast<std::size_t>(row)].keys.empty();
    expect[static_cast<std::size_t>(row)] = empty ? RowExpectation::zero : RowExpectation::value;
    any_value = any_value || !empty;
  }
  for (std::size_t r = 0; r < expect.size(); ++r) meaning.rows[r].expect = expect[r];
  return any_value;
}

/// The rows whose numbers a meaning says; nothing where one of the others contradicts it.
std::optional<std::vector<std::int64_t>> computed_rows(const Failure& failure, const LiveKeys& live,
                                                       Attended& meaning,
                                                       const std::vector<std::int64_t>& rows) {
  const bool swallowed = depends_on_poison(failure);
  std::vector<std::int64_t> computed;
  for (const std::int64_t at : rows) {
    if (at >= failure.got.rows) return std::nullopt;
    AttendedRow& row = meaning.rows[static_cast<std::size_t>(at)];
    if (row.expect == RowExpectation::untouched) {
      if (!std::ranges::all_of(untouched_heads(failure.got, at), nobodys)) return std::nullopt;
      continue;
    }
    if (row.keys != failure.meaning.rows[static_cast<std::size_t>(at)].keys) live.mark(row);
    const bool poisoned = has_nan(failure.got, at);
    if (has_unknown_key(row)) {
      if (!poisoned && !swallowed) return std::nullopt;
      continue;
    }
    if (poisoned) return std::nullopt;
    computed.push_back(at);
  }
  return computed;
}

/// Takes the best out of `fits`, by the order of the list where others are nearly as good.
Fit take_best(std::vector<Fit>& fits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < fits.size(); ++i) {
    if (fits[i].worst < near_tie * fits[best].worst) best = i;
  }
  Fit taken = std::move(fits[best]);
  fits.erase(fits.begin() + static_cast<std::ptrdiff_t>(best));
  return taken;
}

std::optional<Fit> fit_live(const Failure& failure, const LiveKeys& live, Attended meaning,
                            const std::vector<std::int64_t>& rows, ReferenceOptions options,
                            const Hypothesis* hypothesis) {
  if (rows.empty() || meaning.rows.size() != failure.meaning.rows.size()) return std::nullopt;
  const auto computed = computed_rows(failure, live, meaning, rows);
  if (!computed) return std::nullopt;
  Fit result;
  if (hypothesis != nullptr) {
    result.id = hypothesis->id;
    result.says = hypothesis->says;
  }
  // Poison alone is no evidence for a hypothesis; a call that says so is one.
  if (computed->empty()) return hypothesis == nullptr ? std::optional(result) : std::nullopt;
  const bool any_value = expect_of_rows(meaning, *computed);
  options.round_scaled_q = failure.profile.q_scaled_in_input_dtype;
  options.only_rows = *computed;
  result.expected = reference_attention(meaning, failure.source, options);
  if (hypothesis != nullptr) apply_factor(*hypothesis, failure.source, result.expected);
  const auto results =
      compare(meaning, result.expected, failure.got, failure.profile, failure.source);
  for (const OracleResult& one : results) {
    if (one.oracle == "hard") result.worst = one.worst;
    const bool applies = any_value || one.oracle == "rows";  // zeros are compared by that alone
    if (applies && !one.passed) return std::nullopt;
  }
  return result;
}

std::vector<Fit> fits_of(const Failure& failure, const std::vector<const Hypothesis*>& hypotheses,
                         const std::vector<std::int64_t>& rows) {
  const LiveKeys live(failure.source);
  std::vector<Fit> fits;
  for (const Hypothesis* hypothesis : hypotheses) {
    Attended meaning = failure.meaning;
    if (!hypothesis->apply(failure.source.problem(), meaning)) continue;
    ReferenceOptions heads;
    heads.k_head_shift = hypothesis->k_head_shift;
    heads.v_head_shift = hypothesis->v_head_shift;
    if (auto found = fit_live(failure, live, std::move(meaning), rows, heads, hypothesis)) {
      fits.push_back(*std::move(found));
    }
  }
  return fits;
}

/// The hypotheses that fits are of.
std::vector<const Hypothesis*> those_of(const std::vector<Hypothesis>& hypotheses,
                                        const std::vector<Fit>& fits) {
  std::vector<const Hypothesis*> list;
  for (const Hypothesis& one : hypotheses) {
    const bool fits_here =
        std::any_of(fits.begin(), fits.end(), [&](const Fit& f) { return f.id == one.id; });
    if (fits_here) list.push_back(&one);
  }
  return list;
}

void add_fits(MisreadSearch& search, const std::vector<const Misreading*>& misreadings,
              const std::vector<std::int64_t>& rows, std::vector<Fit>& fits) {
  for (const Misreading* one : misreadings) {
    if (auto found = search.fit(*one, rows)) fits.push_back(*std::move(found));
  }
}

}  // namespace

std::vector<std::int64_t> rows_to_explain(const Failure& failure, std::size_t hypotheses,
                                          std::size_t most, bool all) {
  const Model& model = failure.source.problem().model;
  const auto row_count = static_cast<std::int64_t>(failure.meaning.rows.size());
  std::vector<std::int64_t> rows;
  const auto add = [&](std::int64_t row) {
    if (row < 0 || row >= static_cast<std::int64_t>(failure.meaning.rows.size())) return;
    const bool has_value =
        failure.meaning.rows[static_cast<std::size_t>(row)].expect == RowExpectation::value;
    if (has_value && std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
  };
  for (std::int64_t r = 0; r < std::min(failure.got.rows, row_count); ++r) {
    if (std::ranges::any_of(untouched_heads(failure.got, r), nobodys)) add(r);
    if (!rows.empty()) break;  // one of those that nobody wrote
  }
  for (const OracleResult& result : failure.oracles) {
    if (!result.passed) add(result.row);
  }
  std::int64_t row = 0;
  for (const Request& request : failure.source.problem().requests) {
    add(row + request.new_tokens - 1);
    add(row);
    row += request.new_tokens;
  }
  for (std::int64_t r = 0; all && r < row && rows.size() < most; ++r) add(r);
  const std::int64_t per_row = std::max<std::int64_t>(1, failure.source.problem().max_kv_len()) *
                               model.num_q_heads * (model.head_dim + model.v_head_dim);
  const std::int64_t affordable = budget / static_cast<std::int64_t>(hypotheses + 1) / per_row;
  const auto kept = std::clamp<std::int64_t>(affordable, 1, static_cast<std::int64_t>(most));
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(kept)));
  return rows;
}

std::optional<Fit> fit(const Failure& failure, Attended meaning,
                       const std::vector<std::int64_t>& rows) {
  return fit_live(failure, LiveKeys(failure.source), std::move(meaning), rows, {}, nullptr);
}

std::optional<Fit> fit(const Failure& failure, const Hypothesis& hypothesis,
                       const std::vector<std::int64_t>& rows) {
  std::vector<Fit> fits = fits_of(failure, {&hypothesis}, rows);
  return fits.empty() ? std::nullopt : std::optional(std::move(fits.front()));
}

bool reads_dead_keys(const TensorSource& source, Attended meaning) {
  const LiveKeys live(source);
  return std::any_of(meaning.rows.begin(), meaning.rows.end(), [&](AttendedRow& row) {
    live.mark(row);
    return has_unknown_key(row);
  });
}

Ranking rank_hypotheses(const Failure& failure, const std::vector<Hypothesis>& hypotheses) {
  std::vector<const Hypothesis*> left;
  left.reserve(hypotheses.size());
  for (const Hypothesis& one : hypotheses) left.push_back(&one);
  std::vector<std::int64_t> rows = rows_to_explain(failure, left.size(), most_rows);
  // One row first: most are refused by it. Of a poisoned one nothing is computed.
  if (rows.size() > 1 && !has_nan(failure.got, rows.front())) {
    left = those_of(hypotheses, fits_of(failure, left, {rows.front()}));
  }
  std::vector<Fit> fits = fits_of(failure, left, rows);
  MisreadSearch search(failure, rows);
  const std::vector<Misreading> given_back = readings_of_given_back_keys(failure, hypotheses);
  std::vector<const Misreading*> misreadings = search.candidates(given_back);
  for (const Misreading* one : search.candidates(all_misreadings())) misreadings.push_back(one);
  add_fits(search, misreadings, rows, fits);
  if (fits.size() > 1) {
    const auto more = rows_to_explain(failure, fits.size(), most_rows_of_ties, true);
    std::vector<Fit> stricter;
    if (more.size() > rows.size()) {
      stricter = fits_of(failure, those_of(hypotheses, fits), more);
      std::erase_if(misreadings, [&](const Misreading* one) {
        return std::none_of(fits.begin(), fits.end(),
                            [&](const Fit& f) { return f.id == one->id; });
      });
      add_fits(search, misreadings, more, stricter);
    }
    if (!stricter.empty()) {
      fits = std::move(stricter);
      rows = more;
    }
  }
  Ranking ranking{.fits = {}, .rows = rows.size()};
  while (!fits.empty()) ranking.fits.push_back(take_best(fits));
  return ranking;
}

bool same_numbers(const Fit& a, const Fit& b) {
  if (a.expected.out.empty() || a.expected.out.size() != b.expected.out.size()) return false;
  for (std::size_t i = 0; i < a.expected.out.size(); ++i) {
    const double scale = std::max(1e-3, std::fabs(a.expected.out[i]));
    if (std::fabs(a.expected.out[i] - b.expected.out[i]) > 1e-9 * scale) return false;
  }
  return true;
}

bool depends_on_poison(const Failure& failure) {
  return std::any_of(failure.oracles.begin(), failure.oracles.end(),
                     [](const OracleResult& r) { return r.oracle == "poison" && !r.passed; });
}

}  // namespace attest
