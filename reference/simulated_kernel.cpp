#include "reference/simulated_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "contracts/dtype.hpp"

namespace attest {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

float rounded(Dtype dtype, float x, bool toward_zero) {
  std::uint32_t bits = encode(dtype, x);
  if (toward_zero && std::abs(decode(dtype, bits)) > std::abs(x)) --bits;  // sign and magnitude
  return decode(dtype, bits);
}

/// K and V rows that one row of q sees, of one kv head, in float32.
struct Keys {
  std::int64_t count = 0;
  std::vector<float> k, v;
};

Keys keys_of(const AttendedRow& row, const TensorSource& source, std::int64_t kv_head) {
  const Model& m = source.problem().model;
  Keys keys;
  std::vector<double> k(static_cast<std::size_t>(m.head_dim));
  std::vector<double> v(static_cast<std::size_t>(m.v_head_dim));
  for (const KeyRun& run : row.keys) {
    for (std::int64_t j = 0; j < run.count; ++j, ++keys.count) {
      source.k_row({run.sequence, run.first + j}, kv_head, k);
      source.v_row({run.sequence, run.first + j}, kv_head, v);
      for (const double x : k) keys.k.push_back(static_cast<float>(x));
      for (const double x : v) keys.v.push_back(static_cast<float>(x));
    }
  }
  return keys;
}

struct Sums {
  float max = minus_infinity;
  float sum = 0;
  std::vector<float> out;
};

class Row {
 public:
  Row(const Attended& meaning, const TensorSource& source, const SimulatedKernel& kernel)
      : meaning_(meaning), source_(source), model_(source.problem().model), kernel_(kernel) {}

  void compute(std::int64_t row, std::int64_t head, const Keys& keys, Output& output) {
    std::vector<double> q(static_cast<std::size_t>(model_.head_dim));
    source_.q_row(row, head, q);
    scores_of(q, keys);
    Sums total;
    total.out.resize(static_cast<std::size_t>(model_.v_head_dim));
    const Sums nothing = total;
    Sums sink = total;
    if (meaning_.sinks) {
      sink.max = source_.sink(head);
      sink.sum = 1;
    }
    const std::int64_t share = (keys.count + kernel_.splits - 1) / kernel_.splits;
    for (std::int64_t first = 0; first < keys.count; first += std::max<std::int64_t>(1, share)) {
      Sums sums = kernel_.start_at_sink && first == 0 ? sink : nothing;
      add_keys(keys, first, std::min(keys.count, first + share), sums);
      merge(sums, total);
    }
    if (meaning_.sinks && (!kernel_.start_at_sink || keys.count == 0)) merge(sink, total);
    write(row, head, total, output);
  }

 private:
  float exp_of(float x) const {
    const float wobble = std::fmod(std::abs(x) * 1024.0F, 2.0F) < 1 ? 1.0F : -1.0F;
    return std::exp(x) * (1 + kernel_.exp_error * wobble);
  }

  void scores_of(const std::vector<double>& q, const Keys& keys) {
    const auto scale = static_cast<float>(meaning_.scale);
    const auto descale = static_cast<float>(model_.q_descale.value_or(1)) *
                         static_cast<float>(model_.k_descale.value_or(1));
    scores_.clear();
    std::vector<float> x;
    for (const double value : q) {
      const auto single = static_cast<float>(value);
      x.push_back(kernel_.round_scaled_q ? rounded(model_.q_dtype, single * scale, false) : single);
    }
    for (std::int64_t j = 0; j < keys.count; ++j) {
      float s = 0;
      for (std::size_t d = 0; d < x.size(); ++d) {
        s += x[d] * keys.k[static_cast<std::size_t>(j) * x.size() + d];
      }
      s *= kernel_.round_scaled_q ? descale : descale * scale;
      const auto cap = static_cast<float>(meaning_.softcap);
      scores_.push_back(cap > 0 ? cap * std::tanh(s / cap) : s);
    }
  }

  void add_keys(const Keys& keys, std::int64_t first, std::int64_t last, Sums& sums) {
    for (std::int64_t begin = first; begin < last; begin += kernel_.tile) {
      const std::int64_t end = std::min(last, begin + kernel_.tile);
      const float largest = *std::max_element(scores_.begin() + begin, scores_.begin() + end);
      if (largest > sums.max) {
        const float factor = std::exp(sums.max - largest);
        sums.max = largest;
        sums.sum *= factor;
        for (float& x : sums.out) x *= factor;
      }
      for (std::int64_t j = begin; j < end; ++j) add_key(keys, j, sums);
    }
  }

  void add_key(const Keys& keys, std::int64_t j, Sums& sums) const {
    const float p = exp_of(scores_[static_cast<std::size_t>(j)] - sums.max);
    const float used =
        kernel_.p_dtype == Dtype::f32 ? p : rounded(kernel_.p_dtype, p, kernel_.truncate_p);
    sums.sum += kernel_.denominator_sums_rounded_p ? used : p;
    const float* v = &keys.v[static_cast<std::size_t>(j) * sums.out.size()];
    for (std::size_t d = 0; d < sums.out.size(); ++d) sums.out[d] += used * v[d];
  }

  static void merge(const Sums& part, Sums& total) {
    const float top = std::max(part.max, total.max);
    const float mine = std::exp(total.max - top);
    const float theirs = std::exp(part.max - top);
    total.max = top;
    total.sum = total.sum * mine + part.sum * theirs;
    for (std::size_t d = 0; d < total.out.size(); ++d) {
      total.out[d] = total.out[d] * mine + part.out[d] * theirs;
    }
  }

  void write(std::int64_t row, std::int64_t head, const Sums& sums, Output& output) const {
    const auto descale = static_cast<float>(model_.v_descale.value_or(1));
    const float factor = sums.sum > 0 ? descale / sums.sum : 0;
    for (std::int64_t d = 0; d < output.dim; ++d) {
      output.values[output.index(row, head, d)] = rounded(
          model_.out_dtype, sums.out[static_cast<std::size_t>(d)] * factor, kernel_.truncate_out);
    }
    output.lse[static_cast<std::size_t>(row * output.heads + head)] = sums.max + std::log(sums.sum);
  }

  const Attended& meaning_;
  const TensorSource& source_;
  const Model& model_;
  const SimulatedKernel& kernel_;
  std::vector<float> scores_;
};

Output empty_output(const Attended& meaning, const Model& model) {
  Output output;
  output.rows = static_cast<std::int64_t>(meaning.rows.size());
  output.heads = meaning.num_q_heads;
  output.dim = model.v_head_dim;
  const auto per_head = static_cast<std::size_t>(output.rows * output.heads);
  output.values.resize(per_head * static_cast<std::size_t>(output.dim));
  output.untouched.resize(per_head);
  output.lse.resize(per_head);
  return output;
}

}  // namespace

NumericsProfile profile_of(const SimulatedKernel& kernel) {
  NumericsProfile profile;
  profile.implementation = "simulated";
  profile.version = "1";
  profile.engine = "cpu";
  profile.p_dtype = kernel.p_dtype;
  profile.denominator_sums_rounded_p = kernel.denominator_sums_rounded_p;
  profile.maximum_starts_at_sink = kernel.start_at_sink;
  profile.q_scaled_in_input_dtype = kernel.round_scaled_q;
  profile.exp_relative_error = 2e-7 + static_cast<double>(kernel.exp_error);
  profile.kv_splits = static_cast<int>(kernel.splits);
  profile.z_limit = {{"normal", 1.5}, {"recall", 1.5}, {"features", 1.5}};
  return profile;
}

Output simulate(const Attended& meaning, const TensorSource& source,
                const SimulatedKernel& kernel) {
  Output output = empty_output(meaning, source.problem().model);
  Row row(meaning, source, kernel);
  const std::int64_t group = meaning.num_q_heads / meaning.num_kv_heads;
  for (std::int64_t r = 0; r < output.rows; ++r) {
    for (std::int64_t kv_head = 0; kv_head < meaning.num_kv_heads; ++kv_head) {
      const Keys keys = keys_of(meaning.rows[static_cast<std::size_t>(r)], source, kv_head);
      for (std::int64_t g = 0; g < group; ++g) row.compute(r, kv_head * group + g, keys, output);
    }
  }
  return output;
}

Output rounded_output(const std::vector<double>& out, const std::vector<double>& lse,
                      const Attended& meaning, const TensorSource& source) {
  const Dtype dtype = source.problem().model.out_dtype;
  Output output = empty_output(meaning, source.problem().model);
  std::transform(out.begin(), out.end(), output.values.begin(),
                 [&](double x) { return rounded(dtype, static_cast<float>(x), false); });
  std::transform(lse.begin(), lse.end(), output.lse.begin(),
                 [](double x) { return static_cast<float>(x); });
  return output;
}

}  // namespace attest
