#pragma once

#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// What a correct kernel computes, and the sums its error bounds need. All per (row, q head), in
/// the order of Attended::rows.
struct Expected {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;     ///< v_head_dim
  std::vector<double> out;  ///< (rows, heads, dim); 0 where no key is visible
  std::vector<double>
      lse;  ///< (rows, heads) natural log, sink included; -inf where no key is visible
  std::vector<double> score_envelope;  ///< (rows, heads) >= max_j |scale| * sum_d |q_d| |k_jd|
  std::vector<double> max_abs_score;   ///< (rows, heads) max_j |score|, after the cap
  std::vector<double> max_score;       ///< (rows, heads) max_j score; -inf where no key is visible
  std::vector<double> max_or_sink;     ///< (rows, heads) the larger of that and the head's sink
  std::vector<double> max_abs_v;       ///< (rows, heads) max over visible keys and d of |v_jd|
  /// (rows, heads) |scale| sqrt(head_dim) (|q| + max_j |k_j|): moving every input element by at
  /// most t moves a score by at most t times this (and a term in t^2).
  std::vector<double> input_envelope;
  std::vector<std::int64_t> visible;   ///< (rows)
  std::vector<std::uint8_t> computed;  ///< (rows) 1 = asked for; oracles look at these only
  bool scaled_q_rounded = false;       ///< ReferenceOptions::round_scaled_q
  // Envelopes; empty when not asked for. w = softmax weights, sink in the denominator.
  std::vector<double> abs_v;  ///< (rows, heads, dim) sum_j w_j |v_jd|
  std::vector<double> w2v;    ///< (rows, heads, dim) sum_j w_j^2 v_jd
  std::vector<double> w2v2;   ///< (rows, heads, dim) sum_j w_j^2 v_jd^2
  std::vector<double> w2;     ///< (rows, heads) sum_j w_j^2

  std::size_t row_index(std::int64_t row, std::int64_t head) const {
    return static_cast<std::size_t>(row * heads + head);
  }
  std::size_t index(std::int64_t row, std::int64_t head, std::int64_t d) const {
    return static_cast<std::size_t>((row * heads + head) * dim + d);
  }
};

struct ReferenceOptions {
  bool envelopes = true;
  int threads = 0;  ///< 0 = one per core
  /// Replay of a profile's q_scaled_in_input_dtype: q * scale is rounded to q's dtype.
  bool round_scaled_q = false;
  /// A hypothesis about heads: K (V) is read from kv head (h + shift) mod num_kv_heads of the
  /// model.
  std::int64_t k_head_shift = 0;
  std::int64_t v_head_shift = 0;
  /// Rows to compute; empty = all. Others stay 0 (sampled-row mode for long contexts).
  std::vector<std::int64_t> only_rows;
};

/// Softmax(softcap(scale * q k^T) + visibility, sink) v in double, from content, never from a page:
/// the reference cannot share a paging bug with a kernel. Keys stream in blocks, so memory does not
/// grow with the context. Descales of the Problem's model are applied to k, v (and q).
///
/// \param meaning  what each row sees; attended(problem) for the truth, another one for a
/// hypothesis.
///                 Keys of unknown_sequence count as NaN values.
/// \throws std::bad_alloc only. Cost: rows * heads * keys * (head_dim + v_head_dim) double FMAs.
/// Source: docs/numerics.md section 1.
Expected reference_attention(const Attended& meaning, const TensorSource& source,
                             const ReferenceOptions& options = {});

}  // namespace attest
