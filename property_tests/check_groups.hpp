#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/check_calls.hpp"
#include "property_tests/report/console.hpp"

namespace attest {

/// Calls that say the same: one kernel, mode, path and outcome, and the same rules (or, where
/// nothing was judged, the same reason). A recorder's folder has one mistake in a hundred calls;
/// this has it once. Holds one call of each group.
class CallGroups {
 public:
  /// Ignores a call that is simply right.
  void add(const CheckedCall& call);

  bool empty() const { return groups_.empty(); }

  /// A block per group, the largest first: how many, the findings of its first call, and its name.
  /// \param limit  groups to print, the rest are counted; 0: all
  std::string text(const Console& console, std::int64_t limit = 0) const;

 private:
  struct Group {
    std::int64_t calls = 0;
    CheckedCall first;
  };
  std::map<std::vector<std::string>, Group> groups_;
};

}  // namespace attest
