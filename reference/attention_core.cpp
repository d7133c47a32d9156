#include "reference/attention_core.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/array_math.hpp"

// Everything is computed transposed: a row-major (rows, n) array is a column-major (n, rows)
// matrix, so the keys of one packed row are contiguous for the softmax.

namespace attest {
namespace {

using Matrix = Eigen::MatrixXd;
using MatrixF = Eigen::MatrixXf;
using Stride = Eigen::OuterStride<>;
using Values = Eigen::Map<const Matrix, 0, Stride>;

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
AlignedVector<T> zeros(std::int64_t n) {
  return AlignedVector<T>(static_cast<std::size_t>(n));
}

template <class T>
void grow(AlignedVector<T>& array, std::int64_t n) {
  if (array.size() < static_cast<std::size_t>(n)) array.resize(static_cast<std::size_t>(n));
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// What of `visible` lies in the block, in block positions.
void clip(const std::vector<StreamInterval>& visible, std::int64_t position, std::int64_t keys,
          std::vector<StreamInterval>& inside) {
  inside.clear();
  auto next = std::upper_bound(
      visible.begin(), visible.end(), position,
      [](std::int64_t p, const StreamInterval& interval) { return p < interval.end; });
  for (; next != visible.end() && next->begin < position + keys; ++next) {
    inside.push_back(
        {std::max<std::int64_t>(0, next->begin - position), std::min(keys, next->end - position)});
  }
}

}  // namespace

PartialAttention::PartialAttention(const CoreShape& s)
    : max(at(s.packed()), -infinity),
      min(at(s.packed()), infinity),
      sum(at(s.packed())),
      squares(at(s.packed())),
      out(zeros<double>(s.packed() * s.v_head_dim)),
      max_k_norm(zeros<double>(s.tokens)),
      max_abs_v(zeros<double>(s.tokens)),
      abs_v(zeros<float>(s.envelopes ? s.packed() * s.v_head_dim : 0)),
      squares_v(zeros<float>(s.envelopes ? s.packed() * s.v_head_dim * 2 : 0)) {}

void PartialAttention::raise_max(std::size_t r, double new_max, const CoreShape& shape) {
  if (!(new_max > max[r])) return;
  const double factor = std::exp(max[r] - new_max);  // 0 for the first key: max is -inf
  max[r] = new_max;
  sum[r] *= factor;
  squares[r] *= factor * factor;
  const auto dim = static_cast<Eigen::Index>(shape.v_head_dim);
  const auto row = static_cast<Eigen::Index>(r);
  Eigen::Map<Matrix>(out.data(), dim, Eigen::Index(max.size())).col(row) *= factor;
  if (!shape.envelopes) return;
  const auto single = static_cast<float>(factor);
  const auto squared = static_cast<float>(factor * factor);
  Eigen::Map<MatrixF>(abs_v.data(), dim, Eigen::Index(max.size())).col(row) *= single;
  Eigen::Map<MatrixF>(squares_v.data(), 2 * dim, Eigen::Index(max.size())).col(row) *= squared;
}

void PartialAttention::merge(const PartialAttention& other, const CoreShape& shape) {
  PartialAttention scaled = other;
  for (std::size_t r = 0; r < max.size(); ++r) {
    if (other.max[r] == -infinity) continue;
    raise_max(r, other.max[r], shape);
    scaled.raise_max(r, max[r], shape);
    sum[r] += scaled.sum[r];
    squares[r] += scaled.squares[r];
    min[r] = std::min(min[r], other.min[r]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += scaled.out[i];
  for (std::size_t i = 0; i < abs_v.size(); ++i) abs_v[i] += scaled.abs_v[i];
  for (std::size_t i = 0; i < squares_v.size(); ++i) squares_v[i] += scaled.squares_v[i];
  for (std::size_t t = 0; t < max_k_norm.size(); ++t) {
    max_k_norm[t] = std::max(max_k_norm[t], other.max_k_norm[t]);
    max_abs_v[t] = std::max(max_abs_v[t], other.max_abs_v[t]);
  }
}

void CoreWorker::prepare(const CoreShape& s, std::int64_t max_keys) {
  shape_ = s;
  grow(k_, max_keys * s.head_dim);
  grow(v_, s.v_is_in_k ? 0 : max_keys * s.v_head_dim);
  grow(p_, s.packed() * max_keys);
  grow(k_norm_, max_keys);
  grow(v_largest_, max_keys);
  if (!s.envelopes) return;
  grow(p_float_, s.packed() * max_keys);
  grow(p_squared_, s.packed() * max_keys);
  grow(v_abs_, max_keys * s.v_head_dim);
  grow(v_both_, max_keys * s.v_head_dim * 2);
}

void CoreWorker::absorb(std::span<const double> q, std::int64_t position, std::int64_t keys,
                        std::span<const std::vector<StreamInterval>> visible,
                        PartialAttention& into) {
  const Eigen::Index rows = shape_.packed();
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> k(
      k_.data(), keys, shape_.head_dim);
  Eigen::Map<Matrix> p(p_.data(), keys, rows);
  p.noalias() = k * Eigen::Map<const Matrix>(q.data(), shape_.head_dim, rows);
  measure_keys(keys);
  for (std::int64_t token = 0; token < shape_.tokens; ++token) {
    clip(visible[at(token)], position, keys, inside_);
    softmax_token(token, keys, into);
  }
  const Values v(v_data(), shape_.v_head_dim, keys, Stride(v_stride()));
  Eigen::Map<Matrix>(into.out.data(), shape_.v_head_dim, rows).noalias() += v * p;
  if (shape_.envelopes) add_envelopes(keys, into);
}

void CoreWorker::measure_keys(std::int64_t keys) {
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const RowMajor> k(k_.data(), keys, shape_.head_dim);
  const Values v(v_data(), shape_.v_head_dim, keys, Stride(v_stride()));
  for (std::int64_t j = 0; j < keys; ++j) {
    k_norm_[at(j)] = k.row(j).norm();
    v_largest_[at(j)] = v.col(j).cwiseAbs().maxCoeff();
  }
}

/// Turns the scores of one token's packed rows into weights relative to the running maximum; what
/// the token does not see becomes exactly 0.
void CoreWorker::softmax_token(std::int64_t token, std::int64_t keys, PartialAttention& into) {
  using Vector = Eigen::Map<const Eigen::ArrayXd>;
  const std::span<double> p(p_);
  for (const StreamInterval& seen : inside_) {
    const Eigen::Index n = seen.end - seen.begin;
    double& norm = into.max_k_norm[at(token)];
    norm = std::max(norm, Vector(k_norm_.data() + seen.begin, n).maxCoeff());
    double& largest = into.max_abs_v[at(token)];
    largest = std::max(largest, Vector(v_largest_.data() + seen.begin, n).maxCoeff());
  }
  for (std::size_t r = at(token * shape_.group); r < at((token + 1) * shape_.group); ++r) {
    const std::span<double> row = p.subspan(r * at(keys), at(keys));
    double largest = -infinity;
    for (const StreamInterval& seen : inside_) {
      const std::span<double> part = row.subspan(at(seen.begin), at(seen.end - seen.begin));
      if (shape_.softcap > 0) softcap_scores(part, shape_.softcap);
      const Vector scores(part.data(), static_cast<Eigen::Index>(part.size()));
      largest = std::max(largest, scores.maxCoeff());
      into.min[r] = std::min(into.min[r], scores.minCoeff());
    }
    into.raise_max(r, largest, shape_);
    std::int64_t done = 0;
    for (const StreamInterval& seen : inside_) {
      std::fill(row.begin() + done, row.begin() + seen.begin, 0.0);
      const PowerSums powers =
          exp_minus(row.subspan(at(seen.begin), at(seen.end - seen.begin)), into.max[r]);
      into.sum[r] += powers.sum;
      into.squares[r] += powers.squares;
      done = seen.end;
    }
    std::fill(row.begin() + done, row.end(), 0.0);
  }
}

void CoreWorker::add_envelopes(std::int64_t keys, PartialAttention& into) {
  const Eigen::Index rows = shape_.packed();
  const Eigen::Index dim = shape_.v_head_dim;
  const Values v(v_data(), dim, keys, Stride(v_stride()));
  Eigen::Map<MatrixF> p(p_float_.data(), keys, rows);
  Eigen::Map<MatrixF> p2(p_squared_.data(), keys, rows);
  Eigen::Map<MatrixF> absolute(v_abs_.data(), dim, keys);
  Eigen::Map<MatrixF> both(v_both_.data(), 2 * dim, keys);
  p = Eigen::Map<const Matrix>(p_.data(), keys, rows).cast<float>();
  p2 = p.cwiseAbs2();
  both.topRows(dim) = v.cast<float>();
  both.bottomRows(dim) = both.topRows(dim).cwiseAbs2();
  absolute = both.topRows(dim).cwiseAbs();
  Eigen::Map<MatrixF>(into.abs_v.data(), dim, rows).noalias() += absolute * p;
  Eigen::Map<MatrixF>(into.squares_v.data(), 2 * dim, rows).noalias() += both * p2;
}

}  // namespace attest
