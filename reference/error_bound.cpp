#include "reference/error_bound.hpp"

#include <algorithm>

#include "contracts/dtype.hpp"

// The worst case of a correct kernel, step by step. Hats are computed values, u is the unit
// roundoff of the sums (2^-24), D the head size, n the visible keys, w_j the exact weights (sink in
// the denominator), o the exact output, A = sum_j w_j |v_j|, m any number the kernel subtracts.
//
// 1. Scores. Products of 8- or 11-bit significands are exact in f32; D of them are added. Any order
//    rounded to nearest errs by at most D u sum|q||k|; matrix units that truncate after aligning to
//    the largest product by D 2u. Scale, descales and the change to base 2 add a few roundings of
//    the score, subtracting m a few of max|s| (or of |lse|, which bounds a sink that matters). With
//    E >= scale sum_d |q_d||k_jd| and S >= |s_j|
//        ds = 2u (D + 8) E + 32 u S.
//    cap tanh(s / cap) has slope <= 1, so ds passes through it; its own evaluation through one exp
//    and a quotient adds cap (exp / 2 + 16 u). AITER's unified_attention stayed within these
//    constants on an NVIDIA H200, largest error / bound 0.77.
// 2. Weights. p^_j = exp(s^_j - m)(1 + eps): relative error eta = expm1(ds) + exp. An error of m is
//    common to all keys and cancels. Merging split results multiplies by exp(lse_i - lse): one more
//    exp and the roundings of lse.
// 3. P is rounded: rho <= p relative, or p_tiny absolutely below the normal range. Sum over keys of
//    the latter: n p_tiny max|v| / L, L = sum_j exp(s_j - top) = exp(lse - top), where top is what
//    P is relative to: max s, or the sink if it is larger and the maximum starts there. Where it
//    joins later, exp(max s - sink) is a factor of all keys, and runs out of f32 likewise:
//    n 2^-126 max|v| exp(max(max s, sink) - lse).
// 4. Sums of n terms. Every term takes part in at most `chain` additions and in rescales between
//    tiles: c = u (17/16 chain + 16). The worst case is meant: a plain loop over equal terms does
//    err systematically (n u / 6 for 0.1 added a million times), so no sqrt(n) is claimed.
// 5. Quotient. To first order, [.] when the denominator sums the rounded P,
//        o^ - o = sum w_j (delta_j + [rho_j]) (v_j - o) + sum w_j rho_j v_j
//                 + sum w_j kappa_j v_j - o sum w_j kappa'_j
//    with |delta| <= eta, |rho| <= p, |kappa| <= c, so
//        |o^ - o| <= (eta + p + c) A + (eta + c [+ p]) |o|;
//    division by 1 - (eta + c [+ p]) covers the higher orders.
// 6. Normalisation, v's descale and the output: 8 u and u_out relative, out_tiny absolute.
//
// A correct output is a weighted mean of values: the bound never exceeds |o| + max|v| and what
// rounding adds to it, and stays finite where scores are too large for f32 to resolve.

namespace attest {
namespace {

double smallest_normal(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return 0x1p-14;
    case Dtype::fp8_e4m3fn:
      return 0x1p-6;
    case Dtype::fp8_e4m3fnuz:
      return 0x1p-7;
    default:
      return 0x1p-126;
  }
}

/// Half the gap between numbers below the normal range.
double half_subnormal(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return 0x1p-25;
    case Dtype::fp8_e4m3fn:
      return 0x1p-10;
    case Dtype::fp8_e4m3fnuz:
      return 0x1p-11;
    case Dtype::bf16:
      return 0x1p-134;
    default:
      return 0x1p-150;
  }
}

/// Flushed inputs: conversions from fp8 keep small values in every published kernel.
double flushed(Dtype dtype) { return is_fp8(dtype) ? 0 : smallest_normal(dtype); }

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// S of step 1.
double score_size(const Expected& expected, std::size_t i) {
  return std::max(expected.max_abs_score[i], std::abs(expected.lse[i]));
}

}  // namespace

double tiny_weight(const ErrorModel& model, const Expected& expected, std::size_t i) {
  const double top = std::exp(expected.max_or_sink[i] - expected.lse[i]);
  const double of_p = model.sink_first ? top : std::exp(expected.max_score[i] - expected.lse[i]);
  return model.p_tiny * of_p + 0x1p-126 * top;
}

ErrorModel error_model(const NumericsProfile& profile, const Model& model,
                       const Expected& expected) {
  ErrorModel e;
  e.accumulate = unit_roundoff(profile.accumulate);
  e.exp = profile.exp_relative_error;
  const Dtype p_dtype = profile.p_dtype_for(model.q_dtype);
  e.p = unit_roundoff(p_dtype);
  // exp in f32 returns 0 or a subnormal below -87.3, whatever P's format.
  e.p_tiny = std::max(half_subnormal(p_dtype), 0x1p-126);
  e.out = unit_roundoff(model.out_dtype);
  e.out_tiny = profile.denormals_are_zero && !is_fp8(model.out_dtype)
                   ? smallest_normal(model.out_dtype)
                   : half_subnormal(model.out_dtype);
  if (profile.q_scaled_in_input_dtype != expected.scaled_q_rounded) {
    e.q = unit_roundoff(model.q_dtype);
  }
  if (profile.denormals_are_zero) {
    e.score_flush = std::max(flushed(model.q_dtype), flushed(model.kv_dtype));
    e.v_flush = flushed(model.kv_dtype) * model.v_descale.value_or(1);
  }
  e.sink_first = profile.maximum_starts_at_sink;
  e.rounded_denominator = profile.denominator_sums_rounded_p;
  e.splits = std::max(1, profile.kv_splits);
  e.head_dim = static_cast<double>(model.head_dim);
  e.softcap = model.softcap;
  return e;
}

double score_error(const ErrorModel& model, const Expected& expected, std::int64_t row,
                   std::int64_t head) {
  const std::size_t i = expected.row_index(row, head);
  const double u = model.accumulate;
  double ds = (2 * u * (model.head_dim + 8) + model.q) * expected.score_envelope[i];
  ds += 32 * u * score_size(expected, i);
  ds += model.softcap * (model.exp / 2 + 16 * u);
  ds += model.score_flush * expected.input_envelope[i];
  return ds;
}

double addition_chain(const ErrorModel& model, std::int64_t keys) {
  return static_cast<double>(keys + (model.splits > 1 ? model.splits : 0));
}

RowBound row_bound(const ErrorModel& model, const Expected& expected, std::int64_t row,
                   std::int64_t head) {
  const std::size_t i = expected.row_index(row, head);
  const std::int64_t keys = expected.visible[at(row)];
  RowBound bound;
  bound.out = model.out;
  bound.out_tiny = model.out_tiny;
  if (keys == 0) return {};  // 0, exactly
  const double u = model.accumulate;
  const double size = score_size(expected, i);
  const double ds = score_error(model, expected, row, head);
  const double exps = model.splits > 1 ? 2 * model.exp + 16 * u * size : model.exp;
  const double eta = std::expm1(ds) + exps;
  const double c = u * (addition_chain(model, keys) * 17 / 16 + 16);
  const double sums = c + (model.rounded_denominator ? model.p : 0);
  const double growth = eta + sums < 0.9 ? 1 / (1 - eta - sums) : 1e30;  // then the ceiling holds
  const double tiny = static_cast<double>(keys) * tiny_weight(model, expected, i);
  bound.weights = (eta + model.p + c) * growth;
  bound.common = (eta + sums) * growth + 8 * u;
  bound.floor = (tiny * expected.max_abs_v[i] + model.v_flush) * growth;
  bound.ceiling = expected.max_abs_v[i] * (1 + model.p) * (1 + 2 * (c + model.out) + tiny) +
                  model.v_flush + model.out_tiny;
  bound.lse = ds - std::log1p(-std::min(exps + sums + tiny, 0.9)) + 16 * u * (size + 1);
  return bound;
}

}  // namespace attest
