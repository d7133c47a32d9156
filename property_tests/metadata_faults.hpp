#pragma once

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
};

/// Those of metadata_faults.cpp, then those of later_metadata_faults.cpp.
std::span<const MetadataFault> all_metadata_faults();
std::span<const MetadataFault> later_metadata_faults();
const MetadataFault* find_metadata_fault(std::string_view id);

}  // namespace attest
