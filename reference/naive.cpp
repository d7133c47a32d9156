#include "reference/naive.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "contracts/call.hpp"
#include "memory/kv_pool.hpp"

namespace attest {
namespace {

using Real = long double;

/// Sign, exponent and fraction of a binary format, read as its definition says.
struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias;
  bool has_infinity;
};

Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return {5, 10, 15, true};
    case Dtype::bf16:
      return {8, 7, 127, true};
    case Dtype::fp8_e4m3fn:
      return {4, 3, 7, false};
    case Dtype::fp8_e4m3fnuz:
      return {4, 3, 8, false};
    default:
      return {8, 23, 127, true};
  }
}

Real value_of(Dtype dtype, std::uint32_t bits) {
  const Format f = format_of(dtype);
  const std::uint32_t fraction = bits & ((1U << f.fraction_bits) - 1);
  const std::uint32_t top = (1U << f.exponent_bits) - 1;
  const std::uint32_t exponent = (bits >> f.fraction_bits) & top;
  const bool negative = ((bits >> (f.fraction_bits + f.exponent_bits)) & 1U) != 0;
  const bool special = f.has_infinity               ? exponent == top
                       : dtype == Dtype::fp8_e4m3fn ? (bits & 0x7fU) == 0x7fU
                                                    : bits == 0x80U;
  if (special) {
    return f.has_infinity && fraction == 0 ? (negative ? -1 : 1) * HUGE_VALL
                                           : std::numeric_limits<Real>::quiet_NaN();
  }
  const Real significand =
      static_cast<Real>(exponent == 0 ? fraction : fraction + (1U << f.fraction_bits));
  const int power = static_cast<int>(std::max(exponent, 1U)) - f.bias - f.fraction_bits;
  return std::ldexp(negative ? -significand : significand, power);
}

Real element(Dtype dtype, const std::byte* base, std::int64_t index) {
  const std::size_t bytes = size_bytes(dtype);
  std::uint32_t bits = 0;
  std::memcpy(&bits, base + index * static_cast<std::int64_t>(bytes), bytes);
  return value_of(dtype, bits);
}

/// A pool and its element strides, zeros of the Problem replaced by the dense ones.
struct PoolView {
  const std::byte* base;
  Dtype dtype;
  std::int64_t page_size, page, slot, head;

  Real at(std::int64_t token_slot, std::int64_t kv_head, std::int64_t d) const {
    if (token_slot < 0) return std::numeric_limits<Real>::quiet_NaN();
    const std::int64_t offset =
        token_slot / page_size * page + token_slot % page_size * slot + kv_head * head + d;
    return element(dtype, base, offset);
  }
};

PoolView view_of(const Problem& p, const KvStrides& strides, std::int64_t dim,
                 const std::byte* base) {
  PoolView view{base, p.model.kv_dtype, p.pool.page_size, strides.page, strides.slot, strides.head};
  if (view.head == 0) view.head = dim;
  if (view.slot == 0) view.slot = p.model.num_kv_heads * dim;
  if (view.page == 0) view.page = p.pool.page_size * view.slot;
  return view;
}

TensorMeta meta_of(const PoolView& view, const Problem& p, std::int64_t dim) {
  TensorMeta meta =
      contiguous(view.dtype, {p.pool.num_pages, view.page_size, p.model.num_kv_heads, dim});
  meta.strides = {view.page, view.slot, view.head, 1};
  const std::int64_t last = (p.pool.num_pages - 1) * view.page + (view.page_size - 1) * view.slot +
                            (p.model.num_kv_heads - 1) * view.head + dim;
  meta.storage_bytes = last * static_cast<std::int64_t>(size_bytes(view.dtype));
  return meta;
}

/// The slots of the keys that one row sees.
std::vector<std::int64_t> slots_seen(const TensorSource& source, std::size_t request,
                                     std::int64_t token) {
  const Problem& p = source.problem();
  if (p.model.cross_attention) return source.slots().encoder_slots[request];
  std::vector<std::int64_t> slots;
  for (std::int64_t j = 0; j < p.requests[request].kv_len(); ++j) {
    if (naive_sees(p, request, token, j)) slots.push_back(source.slots().slot(request, j));
  }
  return slots;
}

std::vector<Real> query(const TensorSource& source, std::int64_t row, std::int64_t head,
                        bool round_scaled) {
  const Model& m = source.problem().model;
  std::vector<std::byte> bytes(static_cast<std::size_t>(m.head_dim) * size_bytes(m.q_dtype));
  source.q_row(row, head, std::span<std::byte>(bytes));
  std::vector<Real> q;
  for (std::int64_t d = 0; d < m.head_dim; ++d) {
    const Real x = element(m.q_dtype, bytes.data(), d);
    const float product = static_cast<float>(x) * static_cast<float>(m.softmax_scale);
    q.push_back(round_scaled ? value_of(m.q_dtype, encode(m.q_dtype, product))
                             : x * static_cast<Real>(m.softmax_scale));
  }
  return q;
}

void attend(const TensorSource& source, const PoolView& k, const PoolView& v,
            const std::vector<std::int64_t>& slots, const std::vector<Real>& q, std::int64_t head,
            std::span<Real> out, Real& lse) {
  const Model& m = source.problem().model;
  const std::int64_t kv_head = head / (m.num_q_heads / m.num_kv_heads);
  std::vector<Real> scores;
  Real largest = m.sinks ? static_cast<Real>(source.sink(head)) : -HUGE_VALL;
  for (const std::int64_t slot : slots) {
    Real s = 0;
    for (std::int64_t d = 0; d < m.head_dim; ++d) {
      s += q[static_cast<std::size_t>(d)] * k.at(slot, kv_head, d);
    }
    s *= static_cast<Real>(m.q_descale.value_or(1)) * static_cast<Real>(m.k_descale.value_or(1));
    if (m.softcap > 0) {
      const auto cap = static_cast<Real>(m.softcap);
      s = cap * std::tanh(s / cap);
    }
    scores.push_back(s);
    largest = std::max(largest, s);
  }
  Real sum = m.sinks ? std::exp(static_cast<Real>(source.sink(head)) - largest) : 0;
  for (const Real s : scores) sum += std::exp(s - largest);
  for (std::size_t j = 0; j < slots.size(); ++j) {
    const Real weight = std::exp(scores[j] - largest) / sum;
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += weight * v.at(slots[j], kv_head, static_cast<std::int64_t>(d)) *
                static_cast<Real>(m.v_descale.value_or(1));
    }
  }
  lse = slots.empty() ? -HUGE_VALL : largest + std::log(sum);
}

}  // namespace

bool naive_sees(const Problem& problem, std::size_t request, std::int64_t token,
                std::int64_t position) {
  const Request& r = problem.requests[request];
  const std::int64_t own = r.committed + token;
  if (!r.tree_parent.empty()) {
    if (position < r.committed) return true;
    for (std::int64_t t = token; t >= 0; t = r.tree_parent[static_cast<std::size_t>(t)]) {
      if (r.committed + t == position) return true;
    }
    return false;
  }
  return position <= own && (!problem.model.window || own - position < *problem.model.window);
}

NaiveResult naive_attention(const TensorSource& source, const std::byte* k_pool,
                            const std::byte* v_pool, bool round_scaled_q) {
  const Problem& p = source.problem();
  const Model& m = p.model;
  const PoolView k = view_of(p, p.pool.k, m.head_dim, k_pool);
  const PoolView v = m.mla ? k : view_of(p, p.pool.v, m.v_head_dim, v_pool);
  NaiveResult result{p.total_new_tokens(), m.num_q_heads, m.v_head_dim, {}, {}};
  result.out.resize(static_cast<std::size_t>(result.rows * result.heads * result.dim));
  result.lse.resize(static_cast<std::size_t>(result.rows * result.heads));
  std::int64_t row = 0;
  for (std::size_t i = 0; i < p.requests.size(); ++i) {
    for (std::int64_t t = 0; t < p.requests[i].new_tokens; ++t, ++row) {
      if (!p.requests[i].live) continue;
      const std::vector<std::int64_t> slots = slots_seen(source, i, t);
      for (std::int64_t head = 0; head < m.num_q_heads; ++head) {
        const auto place = static_cast<std::size_t>(row * m.num_q_heads + head);
        const auto dim = static_cast<std::size_t>(m.v_head_dim);
        attend(source, k, v, slots, query(source, row, head, round_scaled_q), head,
               std::span(result.out).subspan(place * dim, dim), result.lse[place]);
      }
    }
  }
  return result;
}

NaiveResult naive_attention(const TensorSource& source, bool round_scaled_q) {
  const Problem& p = source.problem();
  const PoolView k = view_of(p, p.pool.k, p.model.head_dim, nullptr);
  const PoolView v = view_of(p, p.pool.v, p.model.v_head_dim, nullptr);
  const KvPool k_pool(source, PoolHalf::k, meta_of(k, p, p.model.head_dim),
                      Stored::committed_and_new);
  if (p.model.mla) return naive_attention(source, k_pool.base(), nullptr, round_scaled_q);
  const KvPool v_pool(source, PoolHalf::v, meta_of(v, p, p.model.v_head_dim),
                      Stored::committed_and_new);
  return naive_attention(source, k_pool.base(), v_pool.base(), round_scaled_q);
}

}  // namespace attest
