#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "property_tests/mutants/policy.hpp"

namespace attest {
namespace {

double rounded(Dtype dtype, double value) {
  return decode(dtype, encode(dtype, static_cast<float>(value)));
}

/// K and V of one kv head, looked up once per key.
class Keys {
 public:
  Keys(const TensorSource& source, std::int64_t kv_head) : source_(source), kv_head_(kv_head) {}

  struct Row {
    std::vector<double> k, v;
  };
  const Row& at(std::int64_t sequence, std::int64_t position) {
    Row& row = rows_[{sequence, position}];
    if (!row.k.empty()) return row;
    const Model& m = source_.problem().model;
    row.k.resize(static_cast<std::size_t>(m.head_dim));
    row.v.resize(static_cast<std::size_t>(m.v_head_dim));
    source_.k_row({sequence, position}, kv_head_, std::span(row.k));
    source_.v_row({sequence, position}, kv_head_, std::span(row.v));
    const double of_k = m.k_descale.value_or(1);
    const double of_v = m.v_descale.value_or(1);
    for (double& value : row.k) value *= of_k;
    for (double& value : row.v) value *= of_v;
    return row;
  }

 private:
  const TensorSource& source_;
  std::int64_t kv_head_;
  std::map<std::pair<std::int64_t, std::int64_t>, Row> rows_;
};

class NaiveRow {
 public:
  NaiveRow(const Attended& meaning, const TensorSource& source)
      : meaning_(meaning), source_(source) {
    const Dtype q = source.problem().model.q_dtype;
    dtype_ = is_fp8(q) ? Dtype::bf16 : q;
  }

  void compute(const AttendedRow& row, std::int64_t number, std::int64_t head, Keys& keys,
               std::vector<double>& out) {
    load_query(number, head);
    weights_.clear();
    used_.clear();
    for (const KeyRun& run : row.keys) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const Keys::Row& key = keys.at(run.sequence, run.first + i);
        double score = 0;
        for (std::size_t d = 0; d < q_.size(); ++d) score += q_[d] * key.k[d];
        score = rounded(dtype_, score);
        if (meaning_.softcap > 0) score = meaning_.softcap * std::tanh(score / meaning_.softcap);
        weights_.push_back(score);
        used_.push_back(&key);
      }
    }
    weigh(head);
    const auto dim = static_cast<std::size_t>(source_.problem().model.v_head_dim);
    for (std::size_t d = 0; d < dim; ++d) {
      double sum = 0;
      for (std::size_t j = 0; j < used_.size(); ++j) sum += weights_[j] * used_[j]->v[d];
      out.push_back(rounded(dtype_, sum));
    }
  }

 private:
  void load_query(std::int64_t number, std::int64_t head) {
    const Model& m = source_.problem().model;
    q_.resize(static_cast<std::size_t>(m.head_dim));
    source_.q_row(number, head, std::span(q_));
    const double scale = meaning_.scale * m.q_descale.value_or(1);
    for (double& value : q_) value = rounded(dtype_, value * scale);
  }

  void weigh(std::int64_t head) {
    double max = -std::numeric_limits<double>::infinity();
    const double sink = source_.sink(head);
    if (meaning_.sinks) max = sink;
    for (const double score : weights_) max = std::max(max, score);
    double sum = meaning_.sinks ? std::exp(sink - max) : 0;
    for (double& weight : weights_) sum += weight = std::exp(weight - max);
    for (double& weight : weights_) weight = rounded(dtype_, weight / sum);
  }

  const Attended& meaning_;
  const TensorSource& source_;
  Dtype dtype_ = Dtype::bf16;
  std::vector<double> q_, weights_;
  std::vector<const Keys::Row*> used_;
};

}  // namespace

std::vector<double> low_precision_attention(const Attended& meaning, const TensorSource& source,
                                            const std::vector<std::int64_t>& rows) {
  const Model& m = source.problem().model;
  std::vector<Keys> keys;
  keys.reserve(static_cast<std::size_t>(m.num_kv_heads));
  for (std::int64_t h = 0; h < m.num_kv_heads; ++h) keys.emplace_back(source, h);
  NaiveRow naive(meaning, source);
  std::vector<double> out;
  for (const std::int64_t row : rows) {
    for (std::int64_t head = 0; head < m.num_q_heads; ++head) {
      const auto kv_head = static_cast<std::size_t>(head / (m.num_q_heads / m.num_kv_heads));
      naive.compute(meaning.rows[static_cast<std::size_t>(row)], row, head, keys[kv_head], out);
    }
  }
  return out;
}

}  // namespace attest
