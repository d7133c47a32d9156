#include "property_tests/diagnose.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "contracts/signatures.hpp"
#include "memory/poison.hpp"
#include "property_tests/hypothesis_fit.hpp"
#include "property_tests/misread/misread_fit.hpp"
#include "property_tests/settle_ties.hpp"
#include "property_tests/wrapped_offset.hpp"

namespace attest {
namespace {

constexpr std::string_view same_is = "; the same here: ";
constexpr std::string_view next_is = "; next: ";

/// Words of a sentence that no hypothesis made, and what they name.
struct Phrase {
  std::string_view words;
  std::string_view name;
};
constexpr Phrase phrases[] = {
    {"the kernel did what the metadata says", "metadata"},
    {" was never written", "unwritten_row"},
    {" wrapped at 2^", "wrapped_offset"},
    {" is all zero: its keys lie past", "zeros_past_2_gib"},
    {" holds the NaN of region ", "stray_read"},
    {"the kernel reads bytes no kernel may read", "stray_read"},
};

std::optional<Region> region_of(Dtype dtype, float value) {
  if (!std::isnan(value)) return std::nullopt;
  const auto bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  if (dtype == Dtype::bf16) return poisoned_region(dtype, bits >> 16);
  if (dtype == Dtype::f16) return poisoned_region(dtype, 0x7c00U | ((bits >> 13) & 0x3ffU));
  return poisoned_region(Dtype::f32, bits);
}

/// A row with a value in which every element of a head still holds the sentinel.
std::optional<std::string> unwritten_row(const Failure& failure) {
  const Output& got = failure.got;
  const auto rows = static_cast<std::int64_t>(failure.meaning.rows.size());
  for (std::int64_t row = 0; row < std::min(rows, got.rows); ++row) {
    const AttendedRow& truth = failure.meaning.rows[static_cast<std::size_t>(row)];
    if (truth.expect != RowExpectation::value) continue;
    for (std::int64_t head = 0; head < got.heads; ++head) {
      if (got.untouched[static_cast<std::size_t>(row * got.heads + head)] == 0) continue;
      return "row " + std::to_string(row) + " (request " + std::to_string(truth.request) +
             ", token " + std::to_string(truth.token) + ") head " + std::to_string(head) +
             " was never written";
    }
  }
  return std::nullopt;
}

/// The tokens of a request that have no slot any more: given back, as a windowed layer's oldest
/// are. "tokens [0, 40) of request 1"; empty where all have one.
std::string given_back(const Failure& failure, std::int64_t request) {
  const Problem& problem = failure.source.problem();
  const auto at = static_cast<std::size_t>(request);
  if (request < 0 || at >= problem.requests.size() || problem.pool.slots.empty()) return "";
  const SlotMap& slots = failure.source.slots();
  std::int64_t first = -1;
  std::int64_t end = 0;
  for (std::int64_t t = 0; t < problem.requests[at].kv_len(); ++t) {
    if (slots.slot(at, t) >= 0) continue;
    if (first < 0) first = t;
    end = t + 1;
  }
  if (first < 0) return "";
  return "tokens [" + std::to_string(first) + ", " + std::to_string(end) + ") of request " +
         std::to_string(request);
}

/// In words: what holds no key in a page in use lies behind the last key, or was given back.
std::string place_of(Region region, bool evicted) {
  if (region != Region::past_kv_len || !evicted) return std::string(name(region));
  return "past kv_len or given back";
}

/// A NaN that still carries its payload says where it was read.
std::optional<std::string> poison_in_output(const Failure& failure) {
  const Dtype dtype = failure.source.problem().model.out_dtype;
  for (std::size_t i = 0; i < failure.got.values.size(); ++i) {
    const auto region = region_of(dtype, failure.got.values[i]);
    if (!region) continue;
    const auto per_row = static_cast<std::size_t>(failure.got.heads * failure.got.dim);
    const std::size_t row = i / per_row;
    const std::string evicted = row < failure.meaning.rows.size()
                                    ? given_back(failure, failure.meaning.rows[row].request)
                                    : "";
    return "row " + std::to_string(row) + " holds the NaN of region \"" +
           place_of(*region, !evicted.empty()) + "\", so it read bytes no kernel may read" +
           (evicted.empty() ? ""
                            : "; " + evicted +
                                  " were evicted: a kernel that reads keys older than the window "
                                  "finds this");
  }
  return std::nullopt;
}

/// A wrap that leads to live pages of others gives finite numbers: those of another meaning.
std::optional<std::string> wrap_that_fits(const Failure& failure, const WrappedOffsets& wraps,
                                          const std::vector<std::int64_t>& rows) {
  // Past 2^32 a signed and an unsigned offset wrap to the same place: the last boundary crossed is
  // named.
  std::vector<std::size_t> order(WrappedOffsets::all_wraps().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [](std::size_t a, std::size_t b) {
    const auto wraps = WrappedOffsets::all_wraps();
    return std::pair(-wraps[a].bits, a) < std::pair(-wraps[b].bits, b);
  });
  for (const std::size_t at : order) {
    const WrappedOffsets::Wrap& wrap = WrappedOffsets::all_wraps()[at];
    std::optional<Attended> meaning = wraps.meaning(failure.meaning, wrap);
    if (meaning && fit(failure, *std::move(meaning), rows)) return wraps.in_words(wrap);
  }
  return wraps.explain_zeros(failure.got, failure.meaning);
}

std::string rounded(double value) {
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 3);
}

/// Rows that seldom tell the mistakes apart which explain them.
constexpr std::size_t few_rows = 2;

/// The best mistake, those that compute the same here, and the next one.
std::optional<std::string> mistake_that_fits(const Failure& failure,
                                             const std::vector<Hypothesis>& hypotheses,
                                             const FurtherOutputs& further, std::size_t most_same) {
  Ranking ranking = rank_hypotheses(failure, hypotheses);
  settle_ties(ranking, hypotheses, further);
  if (ranking.fits.empty()) return std::nullopt;
  const Fit& best = ranking.fits.front();
  std::string same, next;
  std::size_t more = 0;
  for (const Fit& other : std::span(ranking.fits).subspan(1)) {
    if (same_numbers(best, other)) {
      if (++more <= most_same) same += (more == 1 ? std::string(same_is) : ", ") + other.id;
    } else if (next.empty()) {
      next = std::string(next_is) + other.id + " within " + rounded(other.worst);
    }
  }
  if (more > most_same) same += " and " + std::to_string(more - most_same) + " more";
  const bool few = ranking.rows <= few_rows && ranking.fits.size() > 1;
  return best.id + ": " + best.says + " (explains " + std::to_string(ranking.rows) +
         (ranking.rows == 1 ? " row" : " rows") + " within " + rounded(best.worst) +
         " of the bound" + same + next + (few ? "; so few rows hardly tell them apart" : "") + ")";
}

/// "; the same here: page_id_in_16_bits" where ids that lost bits lead to the places of offsets
/// that did; empty where they do not.
std::string shorter_page_ids(const Failure& failure, const std::vector<std::int64_t>& rows) {
  static const std::vector<Misreading> shorter = [] {
    std::vector<Misreading> list;
    for (const Misreading& one : all_misreadings()) {
      if (one.id.starts_with("page_id_in_")) list.push_back(one);
    }
    return list;
  }();
  MisreadSearch search(failure, rows);
  for (const Misreading* one : search.candidates(shorter)) {
    if (search.fit(*one, rows)) return std::string(same_is) + one->id;
  }
  return "";
}

bool has_a_row(const Failure& failure) {
  return std::any_of(failure.meaning.rows.begin(), failure.meaning.rows.end(),
                     [](const AttendedRow& row) { return row.expect == RowExpectation::value; });
}

}  // namespace

std::string diagnose(const Failure& failure) { return diagnose(failure, failure, {}); }

std::string diagnose(const Failure& failure, const Failure& again, const FurtherOutputs& further,
                     std::size_t most_same) {
  const std::vector<Hypothesis> hypotheses = all_hypotheses();
  constexpr std::size_t most_rows = 12;
  const std::vector<std::int64_t> rows = rows_to_explain(failure, hypotheses.size(), most_rows);
  const Attended said = read(failure.call, failure.source.problem(), failure.source.slots());
  const std::optional<std::string> metadata = difference(failure.meaning, said);
  if (metadata) {
    if (const auto found = fit(failure, said, rows)) {
      return "the kernel did what the metadata says (within " + rounded(found->worst) +
             " of the bound), and the metadata is wrong: " + *metadata;
    }
  }
  const std::string also = metadata ? "; the metadata differs from the truth: " + *metadata : "";
  const WrappedOffsets wraps(failure.call, failure.source);
  const auto unwritten = unwritten_row(failure);
  if (!unwritten) {
    std::optional<std::string> wrapped = wraps.explain(failure.stray_reads);
    if (!wrapped && has_a_row(failure)) wrapped = wrap_that_fits(failure, wraps, rows);
    if (wrapped) return *wrapped + shorter_page_ids(again, rows) + also;
  }
  // A row that nobody wrote may be a mistake's of which more is known.
  if (has_a_row(failure)) {
    auto known = mistake_that_fits(again, hypotheses, further, most_same);
    if (!known && &again != &failure) {
      known = mistake_that_fits(failure, hypotheses, further, most_same);
    }
    if (known) return *known + also;
  }
  if (unwritten) return *unwritten + also;
  if (const auto poison = poison_in_output(failure)) return *poison + also;
  if (depends_on_poison(failure)) {
    return "the kernel reads bytes no kernel may read: its output follows what lies there" + also;
  }
  return "unexplained: none of " + std::to_string(hypotheses.size() + all_misreadings().size()) +
         " known mistakes computes this output" + also;
}

DiagnosisNames names_in_diagnosis(std::string_view sentence) {
  for (const Phrase& phrase : phrases) {
    if (sentence.find(phrase.words) == std::string_view::npos) continue;
    DiagnosisNames names{{std::string(phrase.name)}, {}};
    if (const std::size_t at = sentence.find(same_is); at != std::string_view::npos) {
      const std::string_view rest = sentence.substr(at + same_is.size());
      names.first.emplace_back(rest.substr(0, rest.find(';')));
    }
    return names;
  }
  DiagnosisNames names;
  const std::vector<Hypothesis> all = all_hypotheses();
  const std::vector<Misreading>& more = all_misreadings();
  const auto is_name = [&](std::string_view name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& h) { return h.id == name; }) ||
           std::any_of(more.begin(), more.end(), [&](const auto& m) { return m.id == name; });
  };
  const std::string_view id = sentence.substr(0, sentence.find(':'));
  if (!is_name(id)) return names;
  names.first.emplace_back(id);
  if (std::size_t at = sentence.find(same_is); at != std::string_view::npos) {
    for (at += same_is.size();;) {
      const std::size_t end = sentence.find_first_of(",;) ", at);
      names.first.emplace_back(sentence.substr(at, end - at));
      if (end == std::string_view::npos || sentence[end] != ',') break;
      at = end + 2;
    }
  }
  if (const std::size_t at = sentence.find(next_is); at != std::string_view::npos) {
    const std::string_view rest = sentence.substr(at + next_is.size());
    names.second = rest.substr(0, rest.find(' '));
  }
  return names;
}

}  // namespace attest
