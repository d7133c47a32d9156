#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/tensor_source.hpp"

namespace attest {

/// What naive_attention found, in the order of the Problem's q rows. Rows of requests that are not
/// live stay 0.
struct NaiveResult {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::vector<long double> out;  ///< (rows, heads, dim)
  std::vector<long double> lse;  ///< (rows, heads) natural log, sink included; -inf without a key
};

/// May new token `token` of request `request` see the text key at `position`? From positions, the
/// window and the tree's parents alone.
bool naive_sees(const Problem& problem, std::size_t request, std::int64_t token,
                std::int64_t position);

/// Attention as the definition reads: one loop per row, head and key, in long double. Shares no
/// step with reference_attention: bytes come from pools through pages, slots and strides, elements
/// are decoded here, and what a row sees does not come from an Attended. For checking the reference
/// on small cases; slow on purpose.
///
/// \param k_pool  element 0 of the K pool, laid out as problem.pool says.
/// \param v_pool  the same for V; not read for MLA.
NaiveResult naive_attention(const TensorSource& source, const std::byte* k_pool,
                            const std::byte* v_pool, bool round_scaled_q = false);

/// The same over pools that it makes itself.
NaiveResult naive_attention(const TensorSource& source, bool round_scaled_q = false);

}  // namespace attest
