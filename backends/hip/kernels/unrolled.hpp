#pragma once

#include <type_traits>
#include <utility>

#include "backends/hip/runtime/qualifiers.hpp"

namespace attest::hip {

template <class Body, int... i>
__device__ __forceinline__ void unrolled_over(std::integer_sequence<int, i...>, Body&& body) {
  (body(std::integral_constant<int, i>{}), ...);
}

/// body(0), body(1), ..., body(count - 1) with constants: an array indexed by them can live in
/// registers, for every compiler and without a pragma that one of them does not know.
template <int count, class Body>
__device__ __forceinline__ void unrolled(Body&& body) {
  unrolled_over(std::make_integer_sequence<int, count>{}, body);
}

}  // namespace attest::hip
