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

/// Scaled and capped scores of the tile; -inf where the row does not see the key.
void scores_of(const Operands& op, const Tile& tile, const QueryRow& row, const float* q,
               Block& scores) {
  weighted_sum(q, op.head_dim, tile.k.data(), tile_keys, scores);
  for (float& score : scores) score *= op.scale;
  if (op.softcap > 0) {
    for (float& score : scores) score = op.softcap * std::tanh(score / op.softcap);
    if (op.fault == Fault::softcap_in_base_2) {
      for (float& score : scores) score *= ln_2;
    }
  }
  const Keys seen = seen_in(tile, row);
  std::fill(scores.begin(), scores.begin() + seen.begin, -infinity);
  std::fill(scores.begin() + seen.end, scores.end(), -infinity);
  if (!row.tree.empty()) {
    for (std::int64_t t = std::max(seen.begin, row.tree_begin - tile.first); t < seen.end; ++t) {
      const auto u = static_cast<std::size_t>(tile.first + t - row.tree_begin);
      if (u < row.tree.size() && row.tree[u] == 0) scores[static_cast<std::size_t>(t)] = -infinity;
    }
  }
  if (op.fault == Fault::window_tail_of_the_pool) {
    for (std::size_t t = 0; t < scores.size(); ++t) {
      if (tile.absent[t]) scores[t] = -infinity;
    }
  }
  if (op.fault == Fault::reads_past_kv_len_drops_nan) {
    for (float& score : scores) score = std::isnan(score) ? -infinity : score;
  }
}

/// P is rounded to q's dtype before the second product: exactly for f32, to bf16 for fp8 queries.
void round_probabilities(const Operands& op, Block& p) {
  if (op.fault == Fault::p_truncated) {
    for (float& value : p) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff0000U);
    }
    return;
  }
  round_to(is_fp8(op.q_dtype) ? Dtype::bf16 : op.q_dtype, p.data(), block);
}

/// The splits before the last one that saw a key, unless that is the only one.
std::span<const Partial> without_last(std::span<const Partial> splits) {
  while (splits.size() > 1 && splits.back().sum == 0) splits = splits.first(splits.size() - 1);
  return splits.size() > 1 ? splits.first(splits.size() - 1) : splits;
}

}  // namespace

void absorb(const Operands& op, const Tile& tile, const QueryRow& row, const float* q,
            Partial& partial) {
  Block scores;
  scores_of(op, tile, row, q, scores);
  const float max = std::max(partial.max, max_of(scores));
  // All scores -inf or NaN: any finite shift keeps -inf at weight 0 and NaN at NaN.
  const float shift = max == -infinity ? 0.0F : max;

  Block p;
  for (std::size_t t = 0; t < p.size(); ++t) p[t] = softmax_exp(scores[t] - shift);
  const float rescale = softmax_exp(partial.max - shift);
  const float kept =
      op.fault == Fault::softmax_sum_not_rescaled ? partial.sum : partial.sum * rescale;
  if (op.fault == Fault::sum_of_rounded_p) round_probabilities(op, p);
  partial.sum = kept + sum_of(p);
  partial.max = max;

  round_probabilities(op, p);
  auto [begin, end] = seen_in(tile, row);
  if (op.fault == Fault::v_before_the_window_read) begin = 0;
  const std::int64_t v_stride = padded(op.v_head_dim);
  for (std::int64_t d = 0; d < v_stride; d += block) {
    Block pv;
    weighted_sum(p.data() + begin, end - begin, tile.v.data() + begin * v_stride + d, v_stride, pv);
    float* const acc = partial.acc.data() + d;
    for (std::size_t j = 0; j < pv.size(); ++j) acc[j] = acc[j] * rescale + pv[j];
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
  if (op.fault == Fault::last_split_dropped) splits = without_last(splits);
  float max = sink;
  for (const Partial& split : splits) max = std::max(max, split.max);
  const float shift = max == -infinity ? 0.0F : max;

  const std::int64_t v_stride = padded(op.v_head_dim);
  std::fill_n(out, v_stride, 0.0F);
  float denominator = 0;
  for (const Partial& split : splits) {
    const float weight = softmax_exp(split.max - shift);
    const float acc_weight = op.fault == Fault::merge_not_rescaled ? 1.0F : weight;
    denominator += split.sum * weight;
    for (std::int64_t d = 0; d < v_stride; ++d) {
      out[d] += split.acc[static_cast<std::size_t>(d)] * acc_weight;
    }
  }
  if (has_sink) {
    const auto used = std::count_if(splits.begin(), splits.end(),
                                    [](const Partial& split) { return split.sum != 0; });
    const float copies = op.fault == Fault::sink_in_every_split ? static_cast<float>(used) : 1.0F;
    denominator += copies * softmax_exp(sink - shift);
  }
  if (denominator == 0) return -infinity;
  const float factor = op.v_descale;
  for (std::int64_t d = 0; d < v_stride; ++d) out[d] = out[d] / denominator * factor;
  return shift + std::log(denominator);
}

}  // namespace attest
