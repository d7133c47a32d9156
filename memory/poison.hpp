#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "contracts/dtype.hpp"

namespace attest {

/// What the bytes hold that a kernel must not read.
enum class Poison {
  nan,   ///< NaN; its payload names the region where the dtype has payload bits
  loud,  ///< large finite values (1e30-like), for kernels that swallow NaN by masking
  /// 1 + region / 8: what a pool of ordinary numbers would hold. No poison; for comparing with
  /// suites that fill the whole pool.
  ordinary,
};
std::string_view name(Poison poison);
std::optional<Poison> poison_from_name(std::string_view text);

/// Which unread regions hold which poison. V past kv_len inside a request's last page is finite by
/// default: 0 * NaN reaches the output of kernels whose tile equals a page (docs/numerics.md).
struct PoisonPlan {
  Poison poison = Poison::nan;
  bool nan_in_v_tail = false;
  bool operator==(const PoisonPlan&) const = default;
};

/// Why a kernel must not read a byte.
enum class Region : std::uint8_t {
  before_base = 1,   ///< in front of the pool: a wrapped (negative) offset
  unreferenced = 2,  ///< a page no request of the batch holds, or bytes between rows
  past_kv_len = 3,   ///< the rest of a request's last page
  not_stored = 4,    ///< a new token's slot before the kernel stores it
  past_end = 5,      ///< behind the pool
};
inline constexpr std::array all_regions = {Region::before_base, Region::unreferenced,
                                           Region::past_kv_len, Region::not_stored,
                                           Region::past_end};
std::string_view name(Region region);

/// One poison element. NaN: 0x7fc0 + region in f16 and bf16, twice that pattern in f32; fp8 has one
/// NaN (0x7f, or 0x80 in fnuz) and cannot name the region. Loud: 2^100 * (1 + region / 8) in f32
/// and bf16, 32768 * (1 + region / 8) in f16, the region-th largest finite value in fp8 (448 or
/// 240 downwards).
std::uint32_t poison_bits(Dtype dtype, Poison poison, Region region);

/// The region a poison element names, loud or NaN; nothing for other values, nor for fp8 NaN.
std::optional<Region> poisoned_region(Dtype dtype, std::uint32_t bits);

/// Fills `out` with poison. Element boundaries lie at multiples of the dtype's size from its start.
void fill_poison(std::span<std::byte> out, Dtype dtype, Poison poison, Region region);

/// Offset of the first byte of `bytes` that fill_poison would not have written, or nothing.
std::optional<std::size_t> first_not_poison(std::span<const std::byte> bytes, Dtype dtype,
                                            Poison poison, Region region);

}  // namespace attest
