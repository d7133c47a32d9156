#pragma once

#include <algorithm>
#include <cstdint>

namespace attest {

/// a * b, or the nearest of -cap and cap: for addresses of metadata that may say anything.
inline std::int64_t capped_product(std::int64_t a, std::int64_t b, std::int64_t cap) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? cap : -cap;
  return std::clamp(product, -cap, cap);
}

}  // namespace attest
