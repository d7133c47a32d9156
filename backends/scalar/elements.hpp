#pragma once

#include <cstddef>
#include <cstdint>

#include "contracts/dtype.hpp"

namespace attest {

/// Widens `count` consecutive elements to float32, exactly. \pre is_floating(dtype).
void widen(Dtype dtype, const std::byte* from, std::int64_t count, float* to);

/// Rounds each value to the nearest of `dtype` in place; f32 leaves them. \pre dtype is f32, f16 or
/// bf16 and every value lies in [0, 65504].
void round_to(Dtype dtype, float* values, std::int64_t count);

/// Writes `count` values rounded to nearest even; `toward_zero` cuts the low bits off instead.
void narrow(Dtype dtype, const float* from, std::int64_t count, std::byte* to, bool toward_zero);

}  // namespace attest
