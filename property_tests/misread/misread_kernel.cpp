#include "property_tests/misread/misread_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "contracts/dtype.hpp"
#include "property_tests/misread/quantities.hpp"
#include "reference/attention_core.hpp"
#include "reference/expected_writer.hpp"

namespace attest {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Rows of K and V of a reading, as the core wants them.
void copy_keys(const Misreading& mistake, const KernelView& view, const KeyRows& rows,
               std::span<const Reading::Key> keys, CoreWorker& worker) {
  const Model& m = view.model();
  const auto most = [&](const auto& elements, std::int64_t dim) {
    return at(elements ? std::min(dim, elements(view, dim)) : dim);
  };
  const std::size_t k_count = most(mistake.k_elements, m.head_dim);
  const std::size_t v_count = most(mistake.v_elements, m.v_head_dim);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const auto k = worker.k().subspan(j * at(m.head_dim), at(m.head_dim));
    const auto v = worker.v().subspan(j * at(m.v_head_dim), at(m.v_head_dim));
    std::fill(k.begin(), k.end(), 0);
    std::fill(v.begin(), v.end(), 0);
    const auto from_k = rows.values(keys[j].k, PoolHalf::k).first(k_count);
    const auto from_v = rows.values(keys[j].v, PoolHalf::v).first(v_count);
    std::copy(from_k.begin(), from_k.end(), k.begin());
    std::copy(from_v.begin(), from_v.end(), v.begin());
  }
}

}  // namespace

bool Reading::is_zero() const {
  return std::all_of(keys.begin(), keys.end(),
                     [](const Key& key) { return key.v == KeyRows::zeros; });
}

MisreadKernel::MisreadKernel(const KernelView& view, bool round_scaled_q)
    : view_(view), round_scaled_q_(round_scaled_q), rows_(view) {}

Seen MisreadKernel::seen_at(Place place) const {
  const AttendedRow& row = view_.truth->rows[at(place.row)];
  return {.view = view_, .place = place, .number = row.request, .token = row.token};
}

std::optional<std::size_t> MisreadKernel::key_row(const Misreading& mistake, const Seen& seen,
                                                  PoolHalf half, std::int64_t position) {
  const bool wrong = half == PoolHalf::k ? mistake.k : mistake.v;
  const bool is_new = position >= seen.request().committed() && !view_.model().cross_attention;
  if (mistake.unstored && is_new) return rows_.unstored(half);
  Lookup l{.half = half,
           .request = seen.number,
           .position = position,
           .head = seen.place.head / view_.group(),
           .strides = half == PoolHalf::k ? view_.k_strides : view_.v_strides};
  const auto apply = [&](const EditLookup& edit) {
    if (wrong && edit) edit(seen, l);
  };
  apply(mistake.key);
  const auto count = static_cast<std::int64_t>(view_.requests.size());
  if (l.request < 0 || l.request >= count) return std::nullopt;
  const ViewedRequest& from = view_.requests[at(l.request)];
  // A key of the request's own is new or not by its place in the order, wherever it is looked up.
  const std::int64_t place = l.request == seen.number ? position : l.position;
  if (view_.new_apart && place >= from.pooled) {
    l.position += from.first_row - from.pooled;
    apply(mistake.fresh);
    const bool inside = l.position >= 0 && l.head >= 0 && l.head < view_.model().num_kv_heads;
    if (!inside || !view_.source->token_of_row(l.position)) return std::nullopt;
    return rows_.fresh(half, l.position, l.head);
  }
  l.index = from.begin + floor_div(l.position, view_.page);
  l.within = floor_mod(l.position, view_.page);
  apply(mistake.entry);
  if (l.index < 0 || l.index >= static_cast<std::int64_t>(view_.entries.size())) {
    return std::nullopt;
  }
  l.page = view_.entries[at(l.index)];
  apply(mistake.address);
  return rows_.pooled(half, l.page * l.strides.page + l.within * l.strides.slot +
                                l.head * l.strides.head + l.element);
}

std::optional<Reading> MisreadKernel::read(const Misreading& mistake, Place place) {
  Reading reading{.query = place, .keys = {}};
  Place computed = place;
  if (mistake.holds) {
    const auto held = mistake.holds(seen_at(place));
    reading.written = held.has_value();
    if (!held) return reading;
    computed = *held;
    if (view_.truth->rows[at(computed.row)].expect != RowExpectation::value) return std::nullopt;
  }
  const Seen seen = seen_at(computed);
  reading.query = mistake.query ? mistake.query(seen) : computed;
  std::vector<ReadKey> keys;
  for (const std::int64_t p : view_.positions(computed.row)) keys.push_back({p});
  if (mistake.keys) mistake.keys(seen, keys);
  reading.keys.reserve(keys.size());
  for (const ReadKey& key : keys) {
    Reading::Key& one = reading.keys.emplace_back();
    for (const PoolHalf half : {PoolHalf::k, PoolHalf::v}) {
      if (half == PoolHalf::k ? key.zero_k : key.zero_v) continue;
      const auto row = key_row(mistake, seen, half, key.position);
      if (!row) return std::nullopt;
      (half == PoolHalf::k ? one.k : one.v) = *row;
      reading.has_nan = reading.has_nan || rows_.has_nan(*row);
    }
  }
  return reading;
}

std::vector<double> MisreadKernel::scaled_q(const Misreading& mistake, Place query) const {
  const Model& m = view_.model();
  std::vector<double> q(at(m.head_dim));
  view_.source->q_row(query.row, query.head, q);
  const double descales = m.q_descale.value_or(1) * m.k_descale.value_or(1);
  const auto scale = static_cast<float>(view_.truth->scale);
  for (double& x : q) {
    x = round_scaled_q_
            ? descales * decode(m.q_dtype, encode(m.q_dtype, static_cast<float>(x) * scale))
            : x * view_.truth->scale * descales;
  }
  if (mistake.k_elements) {
    const auto kept = std::min(m.head_dim, mistake.k_elements(view_, m.head_dim));
    std::fill(q.begin() + kept, q.end(), 0);
  }
  return q;
}

void MisreadKernel::probe(const Misreading& mistake, const Reading& reading, Place place,
                          Probe& probe) {
  const std::vector<double> q = scaled_q(mistake, reading.query);
  const double cap = view_.truth->softcap;
  std::vector<double> scores;
  scores.reserve(reading.keys.size());
  const double none = -std::numeric_limits<double>::infinity();
  const double sink =
      view_.truth->sinks ? static_cast<double>(view_.source->sink(place.head)) : none;
  double top = sink;
  for (const Reading::Key& key : reading.keys) {
    const auto k = rows_.values(key.k, PoolHalf::k);
    double score = 0;
    for (std::size_t d = 0; d < k.size(); ++d) score += q[d] * static_cast<double>(k[d]);
    if (cap > 0) score = cap * std::tanh(score / cap);
    scores.push_back(score);
    top = std::max(top, score);
  }
  double sum = view_.truth->sinks ? std::exp(sink - top) : 0;
  probe.out.assign(probe.elements.size(), 0);
  probe.abs_v.assign(probe.elements.size(), 0);
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double p = std::exp(scores[j] - top);
    sum += p;
    const auto v = rows_.values(reading.keys[j].v, PoolHalf::v);
    for (std::size_t e = 0; e < probe.elements.size(); ++e) {
      const auto value = static_cast<double>(v[at(probe.elements[e])]);
      probe.out[e] += p * value;
      probe.abs_v[e] += p * std::fabs(value);
    }
  }
  const Model& m = view_.model();
  const std::int64_t kept =
      mistake.v_elements ? mistake.v_elements(view_, m.v_head_dim) : m.v_head_dim;
  for (std::size_t e = 0; e < probe.elements.size(); ++e) {
    const double factor = probe.elements[e] < kept && sum > 0 ? m.v_descale.value_or(1) / sum : 0;
    probe.out[e] *= factor;
    probe.abs_v[e] *= factor;
  }
}

std::optional<MisreadKernel::Result> MisreadKernel::compute(const Misreading& mistake,
                                                            const std::vector<std::int64_t>& rows) {
  ReferenceOptions options;
  options.only_rows = rows;
  options.round_scaled_q = round_scaled_q_;
  ExpectedWriter writer(*view_.truth, *view_.source, options);
  Result result;
  const Model& m = view_.model();
  const CoreShape shape{
      .head_dim = m.head_dim, .v_head_dim = m.v_head_dim, .softcap = view_.truth->softcap};
  CoreWorker worker;
  const Misreading right;
  for (const std::int64_t row : rows) {
    for (std::int64_t head = 0; head < m.num_q_heads; ++head) {
      const Place place{row, head};
      auto reading = read(mistake, place);
      if (!reading) return std::nullopt;
      const Misreading* how = &mistake;
      std::vector<Place>* other = !reading->written    ? &result.unwritten
                                  : reading->has_nan   ? &result.nan
                                  : reading->is_zero() ? &result.zero
                                                       : nullptr;
      if (other != nullptr) {
        other->push_back(place);
        how = &right;
        reading = read(right, place);
        if (!reading || reading->keys.empty()) return std::nullopt;
      }
      const auto count = static_cast<std::int64_t>(reading->keys.size());
      worker.prepare(shape, count);
      copy_keys(*how, view_, rows_, reading->keys, worker);
      const std::vector<double> q = scaled_q(*how, reading->query);
      const std::vector<std::vector<StreamInterval>> visible = {{{0, count}}};
      PartialAttention sums(shape);
      worker.absorb(q, 0, count, visible, sums);
      writer.put(row, head, sums, 0, 0);
    }
  }
  result.expected = std::move(writer.expected());
  return result;
}

}  // namespace attest
