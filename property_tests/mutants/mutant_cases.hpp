#pragma once

#include <cstdint>
#include <optional>

#include "property_tests/case.hpp"
#include "property_tests/generators.hpp"
#include "property_tests/mutants/mutant.hpp"

namespace attest {

/// Which cases a mutant is tried on.
struct MutantStream {
  std::uint64_t seed = 1;
  std::int64_t keys = 512;  ///< context of every live request; 512: anything up to it
  /// Data of every case, as a suite has it; absent: what shows most mistakes soonest.
  std::optional<Recipe> recipe;
  std::optional<Dtype> dtype;  ///< of q, K, V and out of every case that is not fp8
};

/// What a mutant's cases need besides: a pool past 2^32 elements, a call that no correct caller
/// makes, data that no recipe has.
struct Preparation {
  std::string_view part;  ///< of the mutant's name
  bool large_pool = false;
  bool narrow_indices = false;  ///< lengths and tables in int32
  std::string_view fault = "";  ///< metadata fault
  void (*problem)(Case&) = nullptr;
  void (*call)(Call&) = nullptr;
};
/// nullptr: nothing.
const Preparation* preparation_of(const Mutant& mutant);

/// The case of `index`, or nothing where this index has none (the fault does not apply to it, or it
/// costs too much). `step` mutants and those in the metadata come with an explicit call or a named
/// fault; `right` is the same case without it.
struct MutantCase {
  Case c;
  Case right;
  const Backend* backend = nullptr;  ///< that runs it
  const Backend* honest = nullptr;   ///< the kernel without a fault
};
std::optional<MutantCase> case_of(const Mutant& mutant, std::uint64_t index,
                                  const MutantStream& stream);

/// A case whose live requests have about `keys` keys, edges of pages and tiles kept; from index 24
/// on in every fourth only one of them, beside requests as generated. Every other pair of indices
/// keeps its window. Nothing where that is not legal or too dear. Up to 512 keys: as generated.
std::optional<Case> case_of_length(std::uint64_t seed, std::uint64_t index, std::int64_t keys,
                                   const GeneratorOptions& options);

}  // namespace attest
