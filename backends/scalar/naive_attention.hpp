#pragma once

#include <vector>

#include "memory/tensor_source.hpp"

namespace attest {

/// Test only: attention over a Problem's content in double, three nested loops, no pages, no tiles.
struct NaiveOutput {
  std::vector<double> out;    ///< (rows, q heads, v_head_dim)
  std::vector<double> abs_v;  ///< the same shape: sum_j w_j |v_jd|, what an error bound scales with
  std::vector<double> lse;    ///< (rows, q heads)
};
NaiveOutput naive_attention(const TensorSource& source);

}  // namespace attest
