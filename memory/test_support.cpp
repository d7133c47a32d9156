#include "memory/test_support.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "memory/guarded_buffer.hpp"

namespace attest {

Problem verify_problem(std::vector<std::int64_t> committed, std::int64_t drafts) {
  Problem p;
  p.mode = Mode::target_verify;
  p.model.num_q_heads = 8;
  p.model.num_kv_heads = 2;
  p.pool.page_size = 16;
  for (std::size_t i = 0; i < committed.size(); ++i) {
    Request r;
    r.sequence = static_cast<std::int64_t>(i) + 1;
    r.committed = committed[i];
    r.new_tokens = drafts;
    p.requests.push_back(r);
    p.pool.num_pages += r.kv_len() / p.pool.page_size + 2;
  }
  return p;
}

std::vector<ContentKey> keys_of(const AttendedRow& row) {
  std::vector<ContentKey> keys;
  for (const KeyRun& run : row.keys) {
    for (std::int64_t j = 0; j < run.count; ++j) keys.push_back({run.sequence, run.first + j});
  }
  return keys;
}

bool sees(const AttendedRow& row, const ContentKey& key) {
  const std::vector<ContentKey> keys = keys_of(row);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

RowAttention attend(const TensorSource& source, const Attended& meaning, std::int64_t row,
                    std::int64_t q_head) {
  const Model& model = source.problem().model;
  const std::int64_t kv_head = q_head / (model.num_q_heads / model.num_kv_heads);
  std::vector<double> q(static_cast<std::size_t>(model.head_dim));
  std::vector<double> k(q.size());
  std::vector<double> v(static_cast<std::size_t>(model.v_head_dim));
  source.q_row(row, q_head, std::span(q));
  RowAttention result;
  result.keys = keys_of(meaning.rows[static_cast<std::size_t>(row)]);
  double highest = -INFINITY;
  for (const ContentKey& key : result.keys) {
    source.k_row(key, kv_head, std::span(k));
    double dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot += q[d] * k[d];
    dot *= model.softmax_scale * model.q_descale.value_or(1) * model.k_descale.value_or(1);
    if (model.softcap > 0) dot = model.softcap * std::tanh(dot / model.softcap);
    result.weights.push_back(dot);
    highest = std::max(highest, dot);
  }
  double sum = 0;
  for (double& weight : result.weights) sum += weight = std::exp(weight - highest);
  result.lse = highest + std::log(sum);
  result.out.assign(v.size(), 0);
  for (std::size_t j = 0; j < result.keys.size(); ++j) {
    result.weights[j] /= sum;
    source.v_row(result.keys[j], kv_head, std::span(v));
    for (std::size_t d = 0; d < v.size(); ++d) result.out[d] += result.weights[j] * v[d];
  }
  return result;
}

std::uint64_t bits_of(const TensorSource& source) {
  const Problem& p = source.problem();
  std::vector<std::byte> all;
  const auto take = [&](std::int64_t dim, Dtype dtype, auto&& write) {
    std::vector<std::byte> row(static_cast<std::size_t>(dim) * size_bytes(dtype));
    write(std::span(row));
    all.insert(all.end(), row.begin(), row.end());
  };
  for (std::int64_t row = 0; row < p.total_new_tokens(); ++row) {
    for (std::int64_t head = 0; head < p.model.num_q_heads; ++head) {
      take(p.model.head_dim, p.model.q_dtype,
           [&](std::span<std::byte> out) { source.q_row(row, head, out); });
    }
  }
  for (const Request& r : p.requests) {
    for (std::int64_t t = 0; t < r.kv_len(); ++t) {
      for (std::int64_t head = 0; head < p.model.num_kv_heads; ++head) {
        const ContentKey key = content_of(r, t);
        take(p.model.head_dim, p.model.kv_dtype,
             [&](std::span<std::byte> out) { source.k_row(key, head, out); });
        take(p.model.v_head_dim, p.model.kv_dtype,
             [&](std::span<std::byte> out) { source.v_row(key, head, out); });
      }
    }
  }
  for (std::int64_t head = 0; head < p.model.num_q_heads; ++head) {
    const auto sink = std::bit_cast<std::array<std::byte, 4>>(source.sink(head));
    all.insert(all.end(), sink.begin(), sink.end());
  }
  return fingerprint(all);
}

}  // namespace attest
