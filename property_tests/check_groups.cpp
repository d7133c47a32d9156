#include "property_tests/check_groups.hpp"

#include <algorithm>
#include <set>

#include "property_tests/check_text.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

std::vector<std::string> key_of(const CheckedCall& call) {
  std::vector<std::string> key = {call.kernel, call.mode, call.path,
                                  std::string(name(call.outcome()))};
  std::set<std::string> rules;
  for (const Finding& finding : call.check.findings) rules.insert(std::string(finding.rule));
  key.insert(key.end(), rules.begin(), rules.end());
  const CallOutcome outcome = call.outcome();
  if (outcome == CallOutcome::not_recorded || outcome == CallOutcome::unsupported) {
    key.push_back(call.check.reason);
  }
  return key;
}

}  // namespace

void CallGroups::add(const CheckedCall& call) {
  if (checked_call_text(call, Console::silent()).empty()) return;
  Group& group = groups_[key_of(call)];
  if (++group.calls == 1) group.first = call;
}

std::string CallGroups::text(const Console& console, std::int64_t limit) const {
  std::vector<const Group*> order;
  order.reserve(groups_.size());
  for (const auto& [key, group] : groups_) order.push_back(&group);
  std::ranges::sort(order, [](const Group* a, const Group* b) {
    return a->calls != b->calls ? a->calls > b->calls : a->first.id < b->first.id;
  });
  std::string text;
  std::int64_t shown = 0;
  for (const Group* group : order) {
    if (limit > 0 && shown++ == limit) {
      return text + "... and " +
             counted(static_cast<std::int64_t>(order.size()) - limit, "more group") +
             " (--limit 0 shows all)\n";
    }
    text += counted(group->calls, "call") + " like\n" + checked_call_text(group->first, console);
  }
  return text;
}

}  // namespace attest
