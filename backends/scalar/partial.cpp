#include "backends/scalar/partial.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "backends/scalar/elements.hpp"
#include "backends/scalar/softmax_exp.hpp"

namespace attest {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float ln_2 = 0.69314718F;
constexpr std::size_t lanes = 8;  // of the reductions; their order is part of the result

float max_of(const Block& values) {
  std::array<float, lanes> best;
  best.fill(-infinity);
  for (std::size_t i = 0; i < values.size(); i += lanes) {
    // Written so that a NaN never becomes the maximum, as the max instructions have it.
    for (std::size_t l = 0; l < lanes; ++l)
      best[l] = values[i + l] > best[l] ? values[i + l] : best[l];
  }
  float result = -infinity;
  for (const float value : best) result = value > result ? value : result;
  return result;
}

float sum_of(const Block& values) {
  std::array<float, lanes> sums{};
  for (std::size_t i = 0; i < values.size(); i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) sums[l] += values[i + l];
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

/// The part of the tile that the row may see, as indices into the tile.
struct Keys {
  std::int64_t begin = 0, end = 0;
};
Keys seen_in(const Tile& tile, const QueryRow& row) {
  return {std::max<std::int64_t>(row.begin - tile.first, 0),
          std::min(row.end - tile.first, tile.count)};
}

/// Scales the products and caps them.
void scale_and_cap(const Operands& op, Block& scores) {
  const bool caps_first = op.fault == Fault::cap_before_the_scale && op.softcap > 0;
  for (float& score : scores) {
    score = caps_first ? op.softcap * std::tanh(score / op.softcap) * op.scale : score * op.scale;
  }
  if (!(op.softcap > 0) || caps_first) return;
  const bool not_the_cap = op.fault == Fault::cap_times_the_score;
  for (float& score : scores) {
    score = (not_the_cap ? score : op.softcap) * std::tanh(score / op.softcap);
  }
  if (op.fault == Fault::softcap_in_base_2) {
    for (float& score : scores) score *= ln_2;
  }
}

/// Scaled and capped scores of the tile; -inf where the row does not see the key.
void scores_of(const Operands& op, const Tile& tile, const QueryRow& row, const float* q,
               Block& scores) {
  weighted_sum(q, op.head_dim, tile.k.data(), tile_keys, scores);
  scale_and_cap(op, scores);
  if (op.fault == Fault::scores_in_bf16) round_to(Dtype::bf16, scores.data(), block);
  const Keys seen = seen_in(tile, row);
  std::fill(scores.begin(), scores.begin() + seen.begin, -infinity);
  std::fill(scores.begin() + seen.end, scores.end(), -infinity);
  if (op.fault == Fault::tile_padding_capped && op.softcap > 0) {
    std::fill(scores.begin() + tile.count, scores.end(), -op.softcap);
  }
  if (op.fault == Fault::tail_places_score_zero) {
    std::fill(scores.begin() + tile.count, scores.end(), 0.0F);
  }
  if (!row.tree.empty()) {
    for (std::int64_t t = std::max(seen.begin, row.tree_begin - tile.first); t < seen.end; ++t) {
      const auto u = static_cast<std::size_t>(tile.first + t - row.tree_begin);
      if (u < row.tree.size() && row.tree[u] == 0) scores[static_cast<std::size_t>(t)] = -infinity;
    }
  }
  if (op.fault == Fault::window_tail_of_the_pool || op.fault == Fault::prefix_tail_dropped) {
    for (std::size_t t = 0; t < scores.size(); ++t) {
      if (tile.absent[t]) scores[t] = -infinity;
    }
  }
  if (op.fault == Fault::reads_past_kv_len_drops_nan) {
    for (float& score : scores) score = std::isnan(score) ? -infinity : score;
  }
}

float rounded_to_bf16(float value) {
  float magnitude = std::fabs(value);
  round_to(Dtype::bf16, &magnitude, 1);
  return std::copysign(magnitude, value);
}

/// To the four significant bits of an e4m3 type, whose smallest step is 2^-9.
float rounded_to_e4m3(float value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const float step = std::ldexp(1.0F, std::max(exponent - 4, -9));
  return std::nearbyint(value / step) * step;
}

/// P is rounded to q's dtype before the second product: exactly for f32, to bf16 for fp8 queries.
void round_probabilities(const Operands& op, Block& p) {
  if (op.fault == Fault::p_truncated) {
    for (float& value : p) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000U);
    }
    return;
  }
  if (op.fault == Fault::p_in_v_dtype && is_fp8(op.pool.v_dtype)) {
    for (float& value : p) value = rounded_to_e4m3(value);
    return;
  }
  round_to(is_fp8(op.q_dtype) ? Dtype::bf16 : op.q_dtype, p.data(), block);
}

/// Modelled: a split's output is normalised and stored in bf16; empty without the mistake.
std::vector<float> narrowed_output(const Operands& op, const Partial& split) {
  if (op.fault != Fault::split_outputs_in_bf16 || !(split.sum > 0)) return {};
  std::vector<float> values = split.acc;
  for (float& value : values) value /= split.sum;
  round_to(Dtype::bf16, values.data(), static_cast<std::int64_t>(values.size()));
  for (float& value : values) value *= split.sum;
  return values;
}

std::int64_t splits_with_keys(std::span<const Partial> splits) {
  return std::count_if(splits.begin(), splits.end(),
                       [](const Partial& split) { return split.sum != 0; });
}

/// The splits before the last one that saw a key, unless that is the only one.
std::span<const Partial> without_last(std::span<const Partial> splits) {
  while (splits.size() > 1 && splits.back().sum == 0) splits = splits.first(splits.size() - 1);
  return splits.size() > 1 ? splits.first(splits.size() - 1) : splits;
}

/// e^(the split's maximum - shift)
float weight_of(const Operands& op, const Partial& split, float shift) {
  const bool rounds = op.fault == Fault::split_maxima_in_bf16 && std::isfinite(split.max);
  const float max = rounds ? rounded_to_bf16(split.max) : split.max;
  const bool base_2 = op.fault == Fault::split_weights_in_base_2;
  return softmax_exp((max - shift) * (base_2 ? ln_2 : 1.0F));
}

}  // namespace

void absorb(const Operands& op, const Tile& tile, const QueryRow& row, const float* q,
            Partial& partial) {
  Block scores;
  scores_of(op, tile, row, q, scores);
  const float least = op.fault == Fault::maximum_starts_at_zero ? 0.0F : -infinity;
  const float max = std::max({partial.max, max_of(scores), least});
  // All scores -inf or NaN: any finite shift keeps -inf at weight 0 and NaN at NaN.
  const float shift = max == -infinity ? 0.0F : max;

  Block p;
  for (std::size_t t = 0; t < p.size(); ++t) p[t] = softmax_exp(scores[t] - shift);
  const float rescale = softmax_exp(partial.max - shift);
  const float kept =
      op.fault == Fault::softmax_sum_not_rescaled ? partial.sum : partial.sum * rescale;
  if (op.fault == Fault::sum_of_rounded_p) round_probabilities(op, p);
  partial.sum = kept + sum_of(p);
  if (op.fault == Fault::sum_in_bf16) partial.sum = rounded_to_bf16(partial.sum);
  partial.max = max;

  round_probabilities(op, p);
  auto [begin, end] = seen_in(tile, row);
  if (op.fault == Fault::v_before_the_window_read) begin = 0;
  const std::int64_t v_stride = padded(op.v_head_dim);
  for (std::int64_t d = 0; d < v_stride; d += block) {
    Block pv;
    weighted_sum(p.data() + begin, end - begin, tile.v.data() + begin * v_stride + d, v_stride, pv);
    float* const acc = partial.acc.data() + d;
    // Modelled: of two halves of the output, one warp group's each, one is not rescaled.
    const bool kept_as_is = op.fault == Fault::half_not_rescaled && d > 0 && 2 * d >= v_stride;
    const float factor = kept_as_is ? 1.0F : rescale;
    for (std::size_t j = 0; j < pv.size(); ++j) acc[j] = acc[j] * factor + pv[j];
  }
  if (op.fault == Fault::accumulator_in_bf16) {
    round_to(Dtype::bf16, partial.acc.data(), v_stride);
  }
}

float merge(const Operands& op, std::int64_t q_head, std::span<const Partial> splits, float* out) {
  const bool has_sink = !op.sinks.empty();
  const std::int64_t sink_head =
      op.fault == Fault::sink_of_next_head ? (q_head + 1) % op.num_q_heads : q_head;
  float sink = has_sink ? op.sinks[static_cast<std::size_t>(sink_head)] : -infinity;
  if (op.fault == Fault::sink_in_base_2) sink *= ln_2;
  if (op.fault == Fault::sink_scaled) sink *= op.scale;
  if (op.fault == Fault::last_split_dropped) splits = without_last(splits);
  float max = sink;
  for (const Partial& split : splits) max = std::max(max, split.max);
  const float shift = max == -infinity ? 0.0F : max;

  const std::int64_t v_stride = padded(op.v_head_dim);
  std::fill_n(out, v_stride, 0.0F);
  float denominator = 0;
  for (const Partial& split : splits) {
    const float weight = weight_of(op, split, shift);
    const float acc_weight = op.fault == Fault::merge_not_rescaled ? 1.0F : weight;
    denominator += split.sum * weight;
    const std::vector<float> narrowed = narrowed_output(op, split);
    const float* const acc = narrowed.empty() ? split.acc.data() : narrowed.data();
    for (std::int64_t d = 0; d < v_stride; ++d) {
      out[d] += acc[d] * acc_weight;
    }
  }
  if (has_sink) {
    const bool in_each = op.fault == Fault::sink_in_every_split;
    const float copies = in_each ? static_cast<float>(splits_with_keys(splits)) : 1.0F;
    const float shift_of_sink = op.fault == Fault::sink_not_shifted ? 0.0F : shift;
    denominator += copies * softmax_exp(sink - shift_of_sink);
  }
  if (denominator == 0) return -infinity;
  const bool twice = op.fault == Fault::v_descale_in_every_split && splits_with_keys(splits) > 1;
  const float factor = twice ? op.v_descale * op.v_descale : op.v_descale;
  for (std::int64_t d = 0; d < v_stride; ++d) out[d] = out[d] / denominator * factor;
  if (op.fault == Fault::lse_of_the_last_split) {
    while (splits.size() > 1 && splits.back().sum == 0) splits = splits.first(splits.size() - 1);
    return splits.back().max + std::log(splits.back().sum);
  }
  return shift + std::log(denominator);
}

}  // namespace attest
