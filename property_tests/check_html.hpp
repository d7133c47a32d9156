#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "contracts/rule.hpp"
#include "property_tests/check_calls.hpp"

namespace attest {

/// `attest check` as one HTML file that loads nothing: the verdicts by kernel, the findings grouped
/// by severity and rule with the first place of each, what could not be read, and the offsets.
/// Every text out of a file is escaped. Well-formed as XML too.
class CheckHtml {
 public:
  /// Places that could not be read beyond this many are counted.
  static constexpr std::size_t most_unread = 1000;

  void add(const CheckedCall& call);
  void add(const UnreadInput& unread);

  /// \param source  what was checked, as it was named on the command line
  std::string page(const CheckSummary& summary, const std::string& source) const;

 private:
  /// The findings of one rule and severity.
  struct Group {
    std::int64_t calls = 0, places = 0;
    std::string call, place;  ///< the first call's id, and where it stands
    std::string finding;      ///< its first finding in words
  };
  std::string severity_table() const;
  std::string rule_table() const;
  std::string unread_table(const CheckSummary& summary) const;

  /// By severity, the worst first, then by rule: one rule may be wrong in one call and policy in
  /// another.
  std::map<std::pair<Severity, std::string>, Group> groups_;
  std::vector<UnreadInput> unread_;
};

}  // namespace attest
