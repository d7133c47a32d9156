#pragma once

#include <cstdint>

#include "contracts/attended.hpp"
#include "contracts/numerics_profile.hpp"
#include "contracts/output.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// For tests: a correct kernel's arithmetic in float32, and a few ways to get it wrong.
struct SimulatedKernel {
  Dtype p_dtype = Dtype::bf16;
  bool denominator_sums_rounded_p = false;
  bool round_scaled_q = false;
  bool start_at_sink = false;  ///< the running maximum of the first split begins there
  std::int64_t tile = 64;
  std::int64_t splits = 1;
  float exp_error = 0;        ///< exp results are off by up to this, alternating with the argument
  bool truncate_out = false;  ///< output rounded toward zero: wrong
  bool truncate_p = false;    ///< P rounded toward zero: wrong unless the denominator sums it
};

/// The profile that describes it, with z judged on the statistical recipes.
NumericsProfile profile_of(const SimulatedKernel& kernel);

/// Online softmax over tiles and splits, P rounded, sums in float32, output in the model's dtype.
Output simulate(const Attended& meaning, const TensorSource& source,
                const SimulatedKernel& kernel = {});

/// An exact result rounded to the model's output dtype: what a perfect kernel would return.
Output rounded_output(const std::vector<double>& out, const std::vector<double>& lse,
                      const Attended& meaning, const TensorSource& source);

}  // namespace attest
