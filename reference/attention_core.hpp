#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/aligned_vector.hpp"
#include "reference/key_stream.hpp"

namespace attest {

/// Sizes of one packed problem: `tokens` query rows x `group` q heads of one kv head.
struct CoreShape {
  std::int64_t tokens = 1;
  std::int64_t group = 1;
  std::int64_t head_dim = 1;
  std::int64_t v_head_dim = 1;
  double softcap = 0;      ///< 0 = off
  bool envelopes = true;   ///< also the sums that error bounds need
  bool v_is_in_k = false;  ///< V is the first v_head_dim elements of K's rows (MLA)

  std::int64_t packed() const { return tokens * group; }
};

/// Attention over a part of the keys, before normalisation: everything is relative to exp(max).
/// Packed row = token * group + head in group. Parts over disjoint keys merge exactly, as split-KV
/// kernels merge theirs.
struct PartialAttention {
  explicit PartialAttention(const CoreShape& shape);

  AlignedVector<double> max;         ///< (packed) largest score so far; -inf = no key yet
  AlignedVector<double> min;         ///< (packed) smallest score so far
  AlignedVector<double> sum;         ///< (packed) sum p
  AlignedVector<double> squares;     ///< (packed) sum p^2
  AlignedVector<double> out;         ///< (packed, v_head_dim) sum p v
  AlignedVector<double> max_k_norm;  ///< (tokens) largest |k| of a visible key
  AlignedVector<double> max_abs_v;   ///< (tokens) largest |v| element of a visible key
  AlignedVector<float> abs_v;        ///< (packed, v_head_dim) sum p |v|; empty without envelopes
  AlignedVector<float> squares_v;    ///< (packed, 2 v_head_dim) sum p^2 v, then sum p^2 v^2

  /// Adds the part `other` of the same shape.
  void merge(const PartialAttention& other, const CoreShape& shape);
  /// Multiplies everything packed row r holds by exp(old max - new max) and sets the max.
  void raise_max(std::size_t r, double new_max, const CoreShape& shape);
};

/// One thread's scratch: absorbs blocks of keys into partial results. Matrix products in double for
/// the values, in float for the envelopes.
class CoreWorker {
 public:
  /// To be called before absorb(), again when the shape changes; keeps its memory.
  /// \param max_keys  most keys of one block.
  void prepare(const CoreShape& shape, std::int64_t max_keys);

  /// Where the caller puts the block's rows before absorb(): (keys, head_dim), (keys, v_head_dim).
  std::span<double> k() { return k_; }
  std::span<double> v() { return v_; }

  /// Adds the block of `keys` keys that lies at stream position `position`.
  /// \param q        (packed, head_dim), times everything that multiplies the scores.
  /// \param visible  per token: stream intervals it sees.
  void absorb(std::span<const double> q, std::int64_t position, std::int64_t keys,
              std::span<const std::vector<StreamInterval>> visible, PartialAttention& into);

 private:
  void measure_keys(std::int64_t keys);
  void softmax_token(std::int64_t token, std::int64_t keys, PartialAttention& into);
  void add_envelopes(std::int64_t keys, PartialAttention& into);
  const double* v_data() const { return shape_.v_is_in_k ? k_.data() : v_.data(); }
  std::int64_t v_stride() const { return shape_.v_is_in_k ? shape_.head_dim : shape_.v_head_dim; }

  CoreShape shape_;
  AlignedVector<double> k_, v_;
  AlignedVector<double> p_;             ///< (packed, keys) scores, then weights
  AlignedVector<double> k_norm_;        ///< (keys)
  AlignedVector<double> v_largest_;     ///< (keys) largest |v| element
  std::vector<StreamInterval> inside_;  ///< what the token at hand sees, in block positions
  AlignedVector<float> p_float_, p_squared_;
  AlignedVector<float> v_abs_, v_both_;  ///< (keys, v_head_dim), (keys, 2 v_head_dim)
};

}  // namespace attest
