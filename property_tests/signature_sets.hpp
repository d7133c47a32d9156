#pragma once

#include <cstdint>
#include <initializer_list>

#include "contracts/call.hpp"

namespace attest::signature_sets {

/// Sets of signatures for tables: a bit each, as MetadataFault::signatures has them.
constexpr std::uint32_t of(std::initializer_list<Signature> signatures) {
  std::uint32_t set = 0;
  for (const Signature signature : signatures) set |= 1U << static_cast<unsigned>(signature);
  return set;
}
inline constexpr std::uint32_t all = (1U << all_signatures.size()) - 1;
constexpr std::uint32_t all_but(std::initializer_list<Signature> signatures) {
  return all & ~of(signatures);
}

}  // namespace attest::signature_sets
