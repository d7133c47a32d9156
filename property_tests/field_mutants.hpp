#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contracts/call.hpp"

namespace attest {

/// One change to one field of a call, of any signature: what a framework could get wrong there,
/// without knowing what the field means.
struct FieldMutant {
  std::string field;   ///< the kernel's own argument name
  std::string change;  ///< "an entry + 1", "zero", "int32"
  bool operator==(const FieldMutant&) const = default;
};

/// Every change of every field of the signature, in field order.
std::vector<FieldMutant> field_mutants(Signature signature);

/// The call with that change, or nothing when it has no such field or would stay as it is. An MLA
/// call gets right work lists first where those are to be changed. `seed`
/// picks the entry where one of many is changed.
std::optional<Call> mutated(const Call& call, const FieldMutant& mutant, std::uint64_t seed);

}  // namespace attest
