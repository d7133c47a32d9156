#pragma once

#include <cstdint>
#include <span>

#include "contracts/attended.hpp"
#include "memory/tensor_source.hpp"
#include "reference/attention.hpp"
#include "reference/attention_core.hpp"

namespace attest {

/// Normalises finished sums and puts them into an Expected. Different (row, head) places may be
/// written by different threads.
class ExpectedWriter {
 public:
  /// Sizes every array of the result; lse and max_score start at -inf for computed rows.
  ExpectedWriter(const Attended& meaning, const TensorSource& source,
                 const ReferenceOptions& options);

  /// q of one row and head times everything that multiplies scores; `out` has head_dim elements.
  void scaled_q(std::int64_t row, std::int64_t head, std::span<double> out) const;

  /// Row `packed` of `sums` (token `token` of it) is the answer of (row, head).
  void put(std::int64_t row, std::int64_t head, const PartialAttention& sums, std::size_t token,
           std::size_t packed);
  /// The row reads something that has no value.
  void put_nan(std::int64_t row, std::int64_t head);

  Expected& expected() { return expected_; }

 private:
  void put_scores(std::int64_t row, std::int64_t head, const PartialAttention& sums,
                  std::size_t token, std::size_t packed);
  void put_envelopes(std::int64_t row, std::int64_t head, const PartialAttention& sums,
                     std::size_t packed, double weight);

  const Attended& meaning_;
  const TensorSource& source_;
  const Model& model_;
  double factor_;  ///< of stored q . k in a score
  Expected expected_;
};

}  // namespace attest
