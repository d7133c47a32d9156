#include "property_tests/misread/misread_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

namespace attest {
namespace {

constexpr std::size_t most_failing_spots = 6;
constexpr std::size_t most_right_spots = 3;
constexpr std::int64_t most_elements = 16;
constexpr std::int64_t most_keys = 32768;
/// Bounds at the spots are those of the truth, so they leave some room.
constexpr double room = 3;
/// Multiply-adds that all of them together may cost, and how many there are at least and at most.
constexpr std::int64_t budget = 1'000'000'000;
constexpr std::int64_t fewest_candidates = 48;
constexpr std::int64_t most_candidates = 400;

std::span<const float> values_of(const Output& got, Place place) {
  return std::span(got.values)
      .subspan(got.index(place.row, place.head), static_cast<std::size_t>(got.dim));
}

std::vector<std::int64_t> spread(std::int64_t dim) {
  const std::int64_t count = std::min(dim, most_elements);
  std::vector<std::int64_t> elements;
  elements.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    elements.push_back(i + 1 == count ? dim - 1 : i * dim / count);
  }
  return elements;
}

bool leaves_elements_out(const Misreading& mistake, const KernelView& view) {
  const Model& m = view.model();
  return (mistake.k_elements && mistake.k_elements(view, m.head_dim) < m.head_dim) ||
         (mistake.v_elements && mistake.v_elements(view, m.v_head_dim) < m.v_head_dim);
}

bool fits_in(const Failure& failure, const std::vector<std::int64_t>& rows) {
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [&](std::int64_t row) {
    const AttendedRow& one = failure.meaning.rows[static_cast<std::size_t>(row)];
    return row < failure.got.rows && one.visible() > 0 && one.visible() <= most_keys;
  });
}

}  // namespace

MisreadSearch::MisreadSearch(const Failure& failure, const std::vector<std::int64_t>& rows)
    : failure_(failure) {
  if (auto view = view_of(failure.call, failure.source, failure.meaning)) {
    view_ = std::make_unique<const KernelView>(*std::move(view));
  }
  const Model& model = failure.source.problem().model;
  const bool same_shape =
      failure.got.heads == model.num_q_heads && failure.got.dim == model.v_head_dim;
  if (!view_ || !same_shape || !fits_in(failure, rows)) {
    view_.reset();
    return;
  }
  kernel_ = std::make_unique<MisreadKernel>(*view_, failure.profile.q_scaled_in_input_dtype);
  elements_ = spread(model.v_head_dim);
  std::int64_t keys = 0;
  for (const std::int64_t row : rows) {
    keys += failure.meaning.rows[static_cast<std::size_t>(row)].visible();
  }
  const std::int64_t cost = keys * model.num_q_heads * (model.head_dim + model.v_head_dim);
  candidates_ = static_cast<std::size_t>(
      std::clamp(budget / std::max<std::int64_t>(1, cost), fewest_candidates, most_candidates));
  ReferenceOptions options;
  options.only_rows = rows;
  options.round_scaled_q = failure.profile.q_scaled_in_input_dtype;
  const Expected truth = reference_attention(failure.meaning, failure.source, options);
  choose_spots(truth, rows);
  // Right numbers that follow poison say nothing about what was read.
  if (!is_usable(truth) || (!any_wrong_ && depends_on_poison(failure))) spots_.clear();
}

/// Whether a right kernel computes the truth from the view: else a call is wrong, or is none that a
/// view can be made of.
bool MisreadSearch::is_usable(const Expected& truth) {
  for (const Spot& spot : spots_) {
    const Misreading right;
    const auto reading = kernel_->read(right, spot.place);
    if (!reading || reading->has_nan) return false;
    MisreadKernel::Probe probe{elements_, {}, {}};
    kernel_->probe(right, *reading, spot.place, probe);
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      const double expected = truth.out[truth.index(spot.place.row, spot.place.head, elements_[e])];
      if (std::fabs(probe.out[e] - expected) > 1e-6 * (1e-3 + probe.abs_v[e])) return false;
    }
    right_.push_back(*reading);
  }
  return true;
}

void MisreadSearch::take(const std::vector<Spot>& from, std::size_t most) {
  const std::size_t before = spots_.size();
  // Other rows first, then other heads of the same.
  for (const bool other_row : {true, false}) {
    for (const Spot& spot : from) {
      if (spots_.size() - before >= (other_row ? (most + 1) / 2 : most)) break;
      const bool known = std::any_of(spots_.begin(), spots_.end(), [&](const Spot& s) {
        return s.place == spot.place || (other_row && s.place.row == spot.place.row);
      });
      if (!known) spots_.push_back(spot);
    }
  }
}

void MisreadSearch::choose_spots(const Expected& truth, const std::vector<std::int64_t>& rows) {
  const ErrorModel errors = error_model(failure_.profile, failure_.source.problem().model, truth);
  std::vector<Spot> wrong, right;
  for (const std::int64_t row : rows) {
    for (std::int64_t head = 0; head < truth.heads; ++head) {
      Spot spot{{row, head}, 0};
      const RowBound bound = row_bound(errors, truth, row, head);
      const auto got = values_of(failure_.got, spot.place);
      for (std::int64_t d = 0; d < truth.dim; ++d) {
        const std::size_t i = truth.index(row, head, d);
        const double error =
            std::fabs(static_cast<double>(got[static_cast<std::size_t>(d)]) - truth.out[i]);
        spot.measure = std::max(spot.measure, error / bound.of(truth.abs_v[i], truth.out[i]));
      }
      if (has_nan(spot.place) || is_untouched(spot.place)) {
        spot.measure = std::numeric_limits<double>::infinity();
      }
      (spot.measure <= 1 ? right : wrong).push_back(spot);
    }
  }
  const auto order = [](const Spot& a, const Spot& b) {
    return std::tuple(-a.measure, a.place.row, a.place.head) <
           std::tuple(-b.measure, b.place.row, b.place.head);
  };
  // Numbers tell more than NaN does.
  std::sort(wrong.begin(), wrong.end(), [&](const Spot& a, const Spot& b) {
    if (std::isinf(a.measure) != std::isinf(b.measure)) return std::isinf(b.measure);
    return order(a, b);
  });
  if (wrong.empty()) std::sort(right.begin(), right.end(), order);
  any_wrong_ = !wrong.empty();
  take(wrong, most_failing_spots);
  take(right, wrong.empty() ? most_failing_spots : most_right_spots);
  for (const Spot& spot : spots_) {
    bounds_.push_back(row_bound(errors, truth, spot.place.row, spot.place.head));
  }
}

bool MisreadSearch::has_nan(Place place) const {
  const auto got = values_of(failure_.got, place);
  return std::any_of(got.begin(), got.end(), [](float x) { return std::isnan(x); });
}
bool MisreadSearch::is_zero(Place place) const {
  const auto got = values_of(failure_.got, place);
  return std::all_of(got.begin(), got.end(), [](float x) { return x == 0; });
}
bool MisreadSearch::is_untouched(Place place) const {
  return failure_.got
             .untouched[static_cast<std::size_t>(place.row * failure_.got.heads + place.head)] != 0;
}

std::optional<double> MisreadSearch::at_spot(const Misreading& mistake, std::size_t spot,
                                             bool& tells) {
  const Place place = spots_[spot].place;
  const auto reading = kernel_->read(mistake, place);
  if (!reading) return std::nullopt;
  const auto said = [](bool agrees) { return agrees ? std::optional(0.0) : std::nullopt; };
  if (!reading->written) {
    tells = true;
    return said(is_untouched(place));
  }
  if (is_untouched(place)) return std::nullopt;
  if (reading->has_nan) return said(has_nan(place) || depends_on_poison(failure_));
  if (has_nan(place)) return std::nullopt;
  const bool changes = leaves_elements_out(mistake, *view_) || !(*reading == right_[spot]);
  if (!changes && spots_[spot].measure > 1) return std::nullopt;
  if (reading->is_zero()) return said(is_zero(place));
  tells = tells || (changes && (spots_[spot].measure > 1 || !any_wrong_));
  MisreadKernel::Probe probe{elements_, {}, {}};
  kernel_->probe(mistake, *reading, place, probe);
  const auto got = values_of(failure_.got, place);
  double worst = 0;
  for (std::size_t e = 0; e < elements_.size(); ++e) {
    const double error =
        std::fabs(static_cast<double>(got[static_cast<std::size_t>(elements_[e])]) - probe.out[e]);
    const double bound = bounds_[spot].of(probe.abs_v[e], probe.out[e]);
    const double measure = error == 0 ? 0 : error / bound;
    if (!(measure <= room)) return std::nullopt;
    worst = std::max(worst, measure);
  }
  return worst;
}

std::optional<double> MisreadSearch::at_spots(const Misreading& mistake) {
  double worst = 0;
  bool tells = false;
  for (std::size_t i = 0; i < spots_.size(); ++i) {
    const auto one = at_spot(mistake, i, tells);
    if (!one) return std::nullopt;
    worst = std::max(worst, *one);
  }
  // NaN or zeros alone are no evidence.
  return tells ? std::optional(worst) : std::nullopt;
}

bool MisreadSearch::contradicts(const Misreading& mistake) {
  bool tells = false;
  for (std::size_t i = 0; i < spots_.size(); ++i) {
    if (kernel_->read(mistake, spots_[i].place) && !at_spot(mistake, i, tells)) return true;
  }
  return false;
}

std::vector<const Misreading*> MisreadSearch::candidates(const std::vector<Misreading>& all) {
  std::vector<std::pair<double, const Misreading*>> found;
  if (spots_.empty()) return {};
  for (const Misreading& mistake : all) {
    if (const auto worst = at_spots(mistake)) found.emplace_back(*worst, &mistake);
  }
  if (found.size() > candidates_) {
    // The nearest ones, in order of the list.
    std::vector<double> measures;
    measures.reserve(found.size());
    for (const auto& [worst, mistake] : found) measures.push_back(worst);
    const auto limit = measures.begin() + static_cast<std::ptrdiff_t>(candidates_);
    std::nth_element(measures.begin(), limit, measures.end());
    std::erase_if(found, [limit](const auto& one) { return one.first > *limit; });
    found.resize(std::min(found.size(), candidates_));
  }
  std::vector<const Misreading*> list;
  list.reserve(found.size());
  for (const auto& [worst, mistake] : found) list.push_back(mistake);
  return list;
}

std::optional<Fit> MisreadSearch::fit(const Misreading& mistake,
                                      const std::vector<std::int64_t>& rows) {
  if (!kernel_ || !fits_in(failure_, rows)) return std::nullopt;
  auto result = kernel_->compute(mistake, rows);
  if (!result) return std::nullopt;
  Output got = failure_.got;
  const auto leave_out = [&](const std::vector<Place>& places, auto agrees) {
    for (const Place place : places) {
      if (!agrees(place)) return false;
      for (std::int64_t d = 0; d < got.dim; ++d) {
        got.values[got.index(place.row, place.head, d)] = static_cast<float>(
            result->expected.out[result->expected.index(place.row, place.head, d)]);
      }
      got.untouched[static_cast<std::size_t>(place.row * got.heads + place.head)] = 0;
    }
    if (!places.empty()) got.lse.clear();
    return true;
  };
  const bool swallowed = depends_on_poison(failure_);
  const bool agree = leave_out(result->nan, [&](Place at) { return has_nan(at) || swallowed; }) &&
                     leave_out(result->unwritten, [&](Place at) { return is_untouched(at); }) &&
                     leave_out(result->zero, [&](Place at) { return is_zero(at); });
  if (!agree) return std::nullopt;
  Attended meaning = failure_.meaning;
  for (AttendedRow& row : meaning.rows) row.expect = RowExpectation::any;
  for (const std::int64_t row : rows) {
    meaning.rows[static_cast<std::size_t>(row)].expect = RowExpectation::value;
  }
  Fit found{.id = mistake.id, .says = mistake.says, .expected = std::move(result->expected)};
  const auto verdicts = compare(meaning, found.expected, got, failure_.profile, failure_.source);
  for (const OracleResult& one : verdicts) {
    if (!one.passed) return std::nullopt;
    if (one.oracle == "hard") found.worst = one.worst;
  }
  return found;
}

}  // namespace attest
