#include "reference/expected_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "contracts/dtype.hpp"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::array<std::vector<double>*, 7> per_head_arrays(Expected& e) {
  return {&e.lse,         &e.score_envelope, &e.max_abs_score, &e.max_score,
          &e.max_or_sink, &e.max_abs_v,      &e.input_envelope};
}

void mark_computed(const ReferenceOptions& options, Expected& e) {
  e.computed.assign(at(e.rows), options.only_rows.empty() ? 1 : 0);
  for (const std::int64_t r : options.only_rows) {
    if (r >= 0 && r < e.rows) e.computed[at(r)] = 1;
  }
}

}  // namespace

ExpectedWriter::ExpectedWriter(const Attended& meaning, const TensorSource& source,
                               const ReferenceOptions& options)
    : meaning_(meaning),
      source_(source),
      model_(source.problem().model),
      factor_(meaning.scale * model_.q_descale.value_or(1) * model_.k_descale.value_or(1)) {
  Expected& e = expected_;
  e.rows = static_cast<std::int64_t>(meaning.rows.size());
  e.heads = meaning.num_q_heads;
  e.dim = model_.v_head_dim;
  e.scaled_q_rounded = options.round_scaled_q;
  const std::size_t per_head = at(e.rows * e.heads);
  const std::size_t elements = per_head * at(e.dim);
  e.out.resize(elements);
  for (std::vector<double>* values : per_head_arrays(e)) values->resize(per_head);
  if (options.envelopes) {
    for (std::vector<double>* values : {&e.abs_v, &e.w2v, &e.w2v2}) values->resize(elements);
    e.w2.resize(per_head);
  }
  e.visible.resize(at(e.rows));
  mark_computed(options, e);
  for (std::int64_t r = 0; r < e.rows; ++r) {
    if (!e.computed[at(r)]) continue;
    e.visible[at(r)] = meaning.rows[at(r)].visible();
    const auto first = static_cast<std::ptrdiff_t>(e.row_index(r, 0));
    std::fill_n(e.lse.begin() + first, e.heads, -infinity);
    std::fill_n(e.max_score.begin() + first, e.heads, -infinity);
    std::fill_n(e.max_or_sink.begin() + first, e.heads, -infinity);
  }
}

void ExpectedWriter::scaled_q(std::int64_t row, std::int64_t head, std::span<double> out) const {
  source_.q_row(row, head, out);
  const double descales = model_.q_descale.value_or(1) * model_.k_descale.value_or(1);
  const auto scale = static_cast<float>(meaning_.scale);
  for (double& x : out) {
    // As a kernel does it: the product in f32, then rounded to q's dtype.
    x = expected_.scaled_q_rounded
            ? descales *
                  decode(model_.q_dtype, encode(model_.q_dtype, static_cast<float>(x) * scale))
            : x * factor_;
  }
}

void ExpectedWriter::put(std::int64_t row, std::int64_t head, const PartialAttention& sums,
                         std::size_t token, std::size_t packed) {
  const std::size_t i = expected_.row_index(row, head);
  const double sink = meaning_.sinks ? static_cast<double>(source_.sink(head)) : -infinity;
  const double top = std::max(sums.max[packed], sink);
  const double share = std::exp(sums.max[packed] - top);
  const double denominator = sums.sum[packed] * share + std::exp(sink - top);
  const double weight = share / denominator;  // of one unit of p
  const double descale = model_.v_descale.value_or(1);
  expected_.lse[i] = top + std::log(denominator);
  expected_.max_or_sink[i] = top;
  put_scores(row, head, sums, token, packed);
  const std::size_t first = expected_.index(row, head, 0);
  const std::size_t dim = at(expected_.dim);
  for (std::size_t d = 0; d < dim; ++d) {
    expected_.out[first + d] = sums.out[packed * dim + d] * weight * descale;
  }
  if (!expected_.w2.empty()) put_envelopes(row, head, sums, packed, weight);
}

void ExpectedWriter::put_scores(std::int64_t row, std::int64_t head, const PartialAttention& sums,
                                std::size_t token, std::size_t packed) {
  std::vector<double> q(at(model_.head_dim));
  scaled_q(row, head, q);
  const double norm = std::sqrt(std::inner_product(q.begin(), q.end(), q.begin(), 0.0));
  const double root = std::sqrt(static_cast<double>(model_.head_dim));
  const std::size_t i = expected_.row_index(row, head);
  expected_.score_envelope[i] = norm * sums.max_k_norm[token];
  expected_.input_envelope[i] = root * (norm + std::abs(factor_) * sums.max_k_norm[token]);
  expected_.max_score[i] = sums.max[packed];
  expected_.max_abs_score[i] = std::max(std::abs(sums.max[packed]), std::abs(sums.min[packed]));
  expected_.max_abs_v[i] = sums.max_abs_v[token] * model_.v_descale.value_or(1);
}

void ExpectedWriter::put_envelopes(std::int64_t row, std::int64_t head,
                                   const PartialAttention& sums, std::size_t packed,
                                   double weight) {
  const std::size_t dim = at(expected_.dim);
  const std::size_t first = expected_.index(row, head, 0);
  const double scaled = weight * model_.v_descale.value_or(1);
  // Summed in float, stored in double: beside a sink that takes nearly all weight, w^2 underflows
  // float.
  const auto put = [&](std::vector<double>& to, std::size_t d, float sum, double factor) {
    to[first + d] = static_cast<double>(sum) * factor;
  };
  expected_.w2[expected_.row_index(row, head)] = sums.squares[packed] * weight * weight;
  const std::size_t squares = packed * 2 * dim;
  for (std::size_t d = 0; d < dim; ++d) {
    put(expected_.abs_v, d, sums.abs_v[packed * dim + d], scaled);
    put(expected_.w2v, d, sums.squares_v[squares + d], weight * scaled);
    put(expected_.w2v2, d, sums.squares_v[squares + dim + d], scaled * scaled);
  }
}

void ExpectedWriter::put_nan(std::int64_t row, std::int64_t head) {
  for (std::vector<double>* values : per_head_arrays(expected_)) {
    (*values)[expected_.row_index(row, head)] = nan;
  }
  const auto first = static_cast<std::ptrdiff_t>(expected_.index(row, head, 0));
  std::fill_n(expected_.out.begin() + first, expected_.dim, nan);
}

}  // namespace attest
