#include "reference/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

// Model: the roundings of P and of the output are independent and uniform in half a unit in the
// last place, so a relative error has at most the variance u^2 / 3 (0.54 of it on average over a
// binade, which is why a clean z lies near 0.7, not 1). With q2 = sum w^2 v^2 and its centred form
// qc = sum w^2 (v - o)^2 = q2 - 2 o sum w^2 v + o^2 sum w^2, an element's variance is the sum of
//
//   P        p^2 / 3 q2; qc instead of q2 when the denominator sums the rounded P, since the
//            common part of numerator and denominator cancels
//   output   u_out^2 / 3 o^2
//   weights  ((2u (E + 4 S + 2 cap))^2 + exp^2 / 3 (1 + cap^2 / 4)) qc: scores and exp in f32. The
//            roundings of a dot product add up to about 0.4 u E, so this is a few times the truth
//   sums     u^2 / 3 chain (q2 + o^2): each addition rounds a partial sum of at most that square
//   tiny     n p_tiny^2 / 3 max|v|^2 / L^2 for subnormal P, out_tiny^2 for the output
//
// The last three keep sigma above zero where the first two vanish (one visible key, an output that
// cancels) and matter otherwise only when P and the output are f32. qc comes from float sums that
// cancel: 2e-6 q2 covers their rounding.
//
// Independence fails where one key carries the row: its P is rounded once for all elements, and
// elements that are all w v with w just below 1 round back to v together. few = w_max^2 / sum w^2
// is the carrying key's part of the variance; P and output get the factor 1 + 2 few, which turns
// the rms u / sqrt(3) into the largest possible u at few = 1. Beside such a key the others are all
// rounded the same way, too: terms under half a unit of a running sum are lost one by one, P under
// the smallest subnormal all become 0. So n such errors add up as n instead of sqrt(n) to the
// degree few^2: sums and tiny get the factor 1 + n few^2.
//
// Gain: least squares of got on out with weights 1 / sigma^2,
//   g = sum(got o / sigma^2) / sum(o^2 / sigma^2).
// Independent elements give it the variance 1 / sum(o^2 / sigma^2). What one P_j shares moves o
// along v_j: e = sum_j w_j rho_j v_j, and for keys with unrelated v_j the part along o is
// sum_j rho_j w_j^2 / sum w^2, variance p^2 / 3 sum w^4 / (sum w^2)^2 <= p^2 / 3 few. Pooling rows
// averages these, but not the bias: rows that round back to v all gain, by half a unit at most;
// scores crowded at a softcap have P that round to the same side (an eighth of a unit is allowed);
// sums in units that truncate lose up to 2u per step of 16 keys.

namespace attest {
namespace {

// As if every row had this many exact elements more: the mean of few squares scatters widely, and
// one limit must serve every head size. 3 % of z at 128.
constexpr double prior_elements = 8;

/// What all elements of a row share.
struct RowNoise {
  double p2, out2, weights2, sums2, tiny2, w2, few, bias, keys = 1;
};

/// Mean square relative error of one weight from scores and exp.
double weight_variance(const ErrorModel& model, const Expected& expected, std::size_t i) {
  const double size = 4 * expected.max_abs_score[i] + 2 * model.softcap;
  const double score = 2 * model.accumulate * (expected.score_envelope[i] + size);
  const double q = model.q * expected.score_envelope[i] / std::sqrt(3 * model.head_dim);
  const double exps = model.exp * model.exp / 3 * (1 + model.softcap * model.softcap / 4);
  return score * score + q * q + exps;
}

RowNoise row_noise(const ErrorModel& model, const Expected& expected, std::int64_t row,
                   std::int64_t head) {
  const std::size_t i = expected.row_index(row, head);
  const std::int64_t keys = expected.visible[static_cast<std::size_t>(row)];
  if (keys == 0) return {};  // 0, exactly
  const double u = model.accumulate;
  const double chain = addition_chain(model, keys);
  const double largest = std::exp(expected.max_score[i] - expected.lse[i]);
  const double tiny = tiny_weight(model, expected, i) * expected.max_abs_v[i];
  RowNoise noise{};
  noise.keys = static_cast<double>(keys);
  noise.w2 = expected.w2[i];
  noise.few = noise.w2 > 0 ? std::min(1.0, largest * largest / noise.w2) : 1.0;
  noise.p2 = model.p * model.p / 3 * (1 + 2 * noise.few);
  noise.out2 = model.out * model.out / 3 * (1 + 2 * noise.few);
  noise.weights2 = weight_variance(model, expected, i);
  const auto n = static_cast<double>(keys);
  const double together = noise.few * noise.few;
  noise.sums2 = u * u / 3 * chain * (1 + chain * together);
  noise.tiny2 = tiny * tiny / 3 * n * (1 + n * together) + model.out_tiny * model.out_tiny +
                model.v_flush * model.v_flush;
  noise.bias = model.p / 8 + (model.p + model.out) / 2 * noise.few * noise.few + model.exp +
               u * (chain / 8 + 16);
  return noise;
}

double variance(const ErrorModel& model, const RowNoise& noise, double o, double w2v, double w2v2) {
  // Beside a sink that takes nearly all weight the float sums of w^2 underflow; (sum w v)^2 <=
  // n sum w^2 v^2 holds always and says how large they are at least.
  w2v2 = std::max(w2v2, o * o / noise.keys);
  const double exact = std::max(0.0, w2v2 - 2 * o * w2v + o * o * noise.w2);
  const double centred = exact + 2e-6 * w2v2;
  return noise.p2 * (model.rounded_denominator ? centred : w2v2) + noise.out2 * o * o +
         noise.weights2 * centred + noise.sums2 * (w2v2 + o * o) + noise.tiny2;
}

}  // namespace

RowStatistics row_statistics(const ErrorModel& model, const Expected& expected, std::int64_t row,
                             std::int64_t head, std::span<const float> got) {
  const RowNoise noise = row_noise(model, expected, row, head);
  const std::size_t first = expected.index(row, head, 0);
  double squares = 0;
  double information = 0;
  double projection = 0;
  for (std::size_t d = 0; d < got.size(); ++d) {
    const double o = expected.out[first + d];
    const double error = static_cast<double>(got[d]) - o;
    const double sigma2 =
        variance(model, noise, o, expected.w2v[first + d], expected.w2v2[first + d]);
    if (sigma2 > 0) {
      squares += error * error / sigma2;
      information += o * o / sigma2;
      projection += error * o / sigma2;
    } else if (error != 0) {
      squares = std::numeric_limits<double>::infinity();
    }
  }
  RowStatistics result;
  result.z = std::sqrt(squares / (static_cast<double>(got.size()) + prior_elements));
  result.has_gain = information > 0;
  if (result.has_gain) {
    result.gain_error = projection / information;
    result.gain_variance = 1 / information + (noise.p2 + noise.weights2) * noise.few;
    result.gain_bias = noise.bias;
  }
  return result;
}

void GainEstimate::add(const RowStatistics& row) {
  if (!row.has_gain) return;
  weight_ += 1 / row.gain_variance;
  errors_ += row.gain_error / row.gain_variance;
  biases_ += row.gain_bias / row.gain_variance;
}

double GainEstimate::limit() const { return 6 / std::sqrt(weight_) + biases_ / weight_; }

}  // namespace attest
