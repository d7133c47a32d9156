#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "contracts/call.hpp"
#include "contracts/problem.hpp"
#include "contracts/slot_map.hpp"

namespace attest {

/// A framework's mistake, put into a correct call: the metadata half of the mutants.
struct MetadataFault {
  std::string_view id;      ///< "prefix_short_by_draft_count"
  std::string_view says;    ///< one sentence
  std::string_view source;  ///< public thread
  /// Changes the call; false when this call cannot have the fault (wrong signature or mode, or the
  /// fault would change nothing).
  bool (*apply)(const Problem&, const SlotMap&, Call&);
  std::string_view argument;   ///< what it changes, under the names of its signatures, "a, b"
  std::string_view needs;      ///< what a step or layer must have, "a target_verify step"
  std::uint32_t signatures{};  ///< that can have it: a bit each

  bool is_of(Signature signature) const {
    return (signatures >> static_cast<unsigned>(signature) & 1U) != 0;
  }
};

/// Those of metadata_faults.cpp, of later_metadata_faults.cpp, of second_metadata_faults.cpp.
std::span<const MetadataFault> all_metadata_faults();
std::span<const MetadataFault> later_metadata_faults();
std::span<const MetadataFault> second_metadata_faults();
const MetadataFault* find_metadata_fault(std::string_view id);

/// Why apply() changed nothing: the signature has no such argument, or the step does not have what
/// the fault needs.
std::string why_nothing_changes(const MetadataFault& fault, Signature signature);

}  // namespace attest
