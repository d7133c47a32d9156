#include "backends/scalar/naive_attention.hpp"

#include <cmath>

namespace attest {
namespace {

bool sees(const Problem& p, const Request& r, std::int64_t token, std::int64_t key) {
  const std::int64_t position = r.committed + token;
  if (p.model.window && position - key >= *p.model.window) return false;
  if (key < r.committed || r.tree_parent.empty()) return key <= position;
  std::int64_t ancestor = token;
  while (ancestor >= 0) {
    if (ancestor == key - r.committed) return true;
    ancestor = r.tree_parent[static_cast<std::size_t>(ancestor)];
  }
  return false;
}

std::vector<ContentKey> visible_keys(const Problem& p, const Request& r, std::int64_t token) {
  std::vector<ContentKey> keys;
  if (p.model.cross_attention) {
    for (std::int64_t j = 0; j < r.encoder_tokens; ++j) keys.push_back({r.sequence, -1 - j});
    return keys;
  }
  for (std::int64_t key = 0; key < r.kv_len(); ++key) {
    if (sees(p, r, token, key)) keys.push_back(content_of(r, key));
  }
  return keys;
}

struct RowInput {
  const TensorSource& source;
  std::int64_t row, head;
  std::vector<ContentKey> keys;
};

void attend_row(const RowInput& in, double* out, double* abs_v, double* lse) {
  const Model& m = in.source.problem().model;
  const std::int64_t kv_head = in.head / (m.num_q_heads / m.num_kv_heads);
  std::vector<double> q(static_cast<std::size_t>(m.head_dim)), k(q.size());
  std::vector<double> v(static_cast<std::size_t>(m.v_head_dim));
  in.source.q_row(in.row, in.head, std::span<double>(q));
  std::vector<double> scores;
  for (const ContentKey& key : in.keys) {
    in.source.k_row(key, kv_head, std::span<double>(k));
    double score = 0;
    for (std::size_t d = 0; d < q.size(); ++d) score += q[d] * k[d];
    score *= m.softmax_scale * m.q_descale.value_or(1) * m.k_descale.value_or(1);
    if (m.softcap > 0) score = m.softcap * std::tanh(score / m.softcap);
    scores.push_back(score);
  }
  double denominator = m.sinks ? std::exp(static_cast<double>(in.source.sink(in.head))) : 0;
  for (const double score : scores) denominator += std::exp(score);
  *lse = std::log(denominator);
  for (std::size_t j = 0; j < in.keys.size(); ++j) {
    in.source.v_row(in.keys[j], kv_head, std::span<double>(v));
    const double weight = std::exp(scores[j]) / denominator * m.v_descale.value_or(1);
    for (std::size_t d = 0; d < v.size(); ++d) {
      out[d] += weight * v[d];
      abs_v[d] += weight * std::fabs(v[d]);
    }
  }
}

}  // namespace

NaiveOutput naive_attention(const TensorSource& source) {
  const Problem& p = source.problem();
  NaiveOutput result;
  const auto heads = static_cast<std::size_t>(p.total_new_tokens() * p.model.num_q_heads);
  const auto dim = static_cast<std::size_t>(p.model.v_head_dim);
  result.out.resize(heads * dim);
  result.abs_v.resize(heads * dim);
  result.lse.resize(heads);
  std::size_t at = 0;
  std::int64_t row = 0;
  for (const Request& r : p.requests) {
    for (std::int64_t t = 0; t < r.new_tokens; ++t, ++row) {
      for (std::int64_t h = 0; h < p.model.num_q_heads; ++h, ++at) {
        attend_row({source, row, h, visible_keys(p, r, t)}, &result.out[at * dim],
                   &result.abs_v[at * dim], &result.lse[at]);
      }
    }
  }
  return result;
}

}  // namespace attest
