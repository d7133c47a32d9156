#pragma once

#include <cstdint>
#include <vector>

#include "contracts/attended.hpp"
#include "contracts/problem.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// Test support: small legal problems and a deliberately plain double-precision attention.

/// Target verify of requests with `committed` lengths, `drafts` new tokens each; 8:2 heads, D 64,
/// page 16, permuted pages.
Problem verify_problem(std::vector<std::int64_t> committed, std::int64_t drafts);

/// Softmax of one row and q head over the keys of `row`.
struct RowAttention {
  std::vector<double> out;
  std::vector<double> weights;  ///< in the order of keys
  std::vector<ContentKey> keys;
  double lse = 0;  ///< without the sink
};
RowAttention attend(const TensorSource& source, const Attended& meaning, std::int64_t row,
                    std::int64_t q_head);

/// Every key of the row, in order.
std::vector<ContentKey> keys_of(const AttendedRow& row);
bool sees(const AttendedRow& row, const ContentKey& key);

/// 64-bit fingerprint of q, K, V of the first tokens and the sinks: changes with any bit of them.
std::uint64_t bits_of(const TensorSource& source);

}  // namespace attest
