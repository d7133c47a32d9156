#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// What a call makes its kernel touch of one operand, counted from element 0 of the view. The bytes
/// between may be untouched; every wrapped offset starts from one inside.
struct AddressInterval {
  std::string operand;  ///< "q", "k", "v", "out", "block table", "split workspace"
  std::int64_t element_bytes = 1;
  std::int64_t first = 0;  ///< lowest element touched; negative where the metadata says so
  std::int64_t end = 0;    ///< one past the highest

  std::int64_t first_byte() const { return first * element_bytes; }
  std::int64_t end_byte() const { return end * element_bytes; }
  bool operator==(const AddressInterval&) const = default;
};

/// One interval per operand that the call's own metadata make the kernel touch, in the order of the
/// arguments. The split workspace is taken as contiguous (rows, heads, splits, v_head_dim) f32.
/// Sizes and strides that no memory has saturate at 2^58 elements. Arrays whose values a capture
/// did not keep leave their operands out. Never throws, and never costs more than the call's own
/// arrays.
std::vector<AddressInterval> address_intervals(const Call& call);

enum class OffsetUnit { bytes, elements };
std::string_view name(OffsetUnit unit);

/// An offset at which 32 bits end: 2^31 for a signed one, 2^32 for an unsigned one.
struct Boundary {
  int bits = 31;
  OffsetUnit unit = OffsetUnit::bytes;

  std::int64_t value() const { return std::int64_t{1} << bits; }
  /// The first element at or past it.
  std::int64_t element(std::int64_t element_bytes) const {
    return unit == OffsetUnit::bytes ? value() / element_bytes : value();
  }
  bool operator==(const Boundary&) const = default;
};
/// The four that offsets wrap at, smallest first for two-byte elements.
std::span<const Boundary> all_boundaries();
std::string name(const Boundary& boundary);  ///< "2^31 bytes"

/// Where an interval lies in relation to a boundary.
enum class Side { below, straddling, above };
std::string_view name(Side side);
Side side_of(const AddressInterval& interval, const Boundary& boundary);

/// What a large-KV case is there to reach.
struct Crossing {
  std::string operand;
  Boundary boundary;
  Side side = Side::straddling;
  bool operator==(const Crossing&) const = default;
};
/// A case that stays below a boundary still has to end this close to it.
inline constexpr std::int64_t just_below_bytes = std::int64_t{1} << 20;
/// Why `call` does not reach it, with the interval it has instead; nothing: it does.
std::optional<std::string> not_reached(const Crossing& crossing, const Call& call);

/// "k bytes [2,147,450,880, 2,147,516,416), past 2^31 bytes; below 2^31 elements". Boundaries that
/// tell nothing new are left out.
std::string to_string(const AddressInterval& interval);
/// 1234567 as "1,234,567".
std::string grouped(std::int64_t number);

}  // namespace attest
