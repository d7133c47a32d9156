#include "property_tests/check_text.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "property_tests/report/by_count.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string title(const CheckedCall& call, const Console& console) {
  const std::string word(name(call.outcome()));
  const bool wrong = call.outcome() == CallOutcome::wrong;
  return (wrong ? console.bad(word) : console.doubtful(word)) + "  " +
         printable((call.place.empty() ? "" : call.place + "  ") + call.id + "  " + call.kernel +
                   "  " + call.mode + " " + call.path +
                   (call.file_version.empty() ? "" : "  of " + call.file_version)) +
         "\n";
}

std::string kernel_table(const CheckSummary& summary, const Console& console) {
  using enum TextTable::Align;
  TextTable table({{"kernel", left},
                   {"calls", right},
                   {"judged", right},
                   {"ok", right},
                   {"wrong", right},
                   {"doubtful label", right},
                   {"not recorded", right},
                   {"unsupported", right}});
  const auto row = [&](const std::string& kernel, const CheckSummary::Kernel& of) {
    const std::string wrong = std::to_string(of.wrong);
    table.add({printable(kernel), std::to_string(of.calls), std::to_string(of.ok + of.wrong),
               std::to_string(of.ok), of.wrong > 0 ? console.bad(wrong) : wrong,
               std::to_string(of.doubtful), std::to_string(of.not_recorded),
               std::to_string(of.unsupported)});
  };
  for (const auto& [kernel, of] : summary.kernels) row(kernel, of);
  if (summary.kernels.size() > 1) row("all", summary.total());
  return table.str();
}

/// What kind of harm each rule of a table did: "fault", "fault, wrong".
std::string severities_text(const std::set<Severity>& severities, bool rejecting) {
  std::string text;
  for (const Severity severity : severities) {
    if (rejects(severity) != rejecting) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(severity));
  }
  return text;
}

std::string rule_table(const CheckSummary& summary, bool rejecting) {
  using enum TextTable::Align;
  TextTable table({{"rule", left}, {"severity", left}, {"calls", right}, {"known from", left}});
  for (const auto& [id, calls] :
       by_count(rejecting ? summary.wrong_by_rule : summary.found_by_rule)) {
    const Rule* rule = find_rule(id);
    const auto severities = summary.severities_by_rule.find(id);
    table.add({id,
               severities == summary.severities_by_rule.end()
                   ? ""
                   : severities_text(severities->second, rejecting),
               std::to_string(calls), rule == nullptr ? "" : std::string(rule->source)});
  }
  return table.str();
}

/// Empty where every operand of the call ends below 2^31 bytes.
std::string address_lines(const CheckedCall& call) {
  std::string text;
  for (const AddressInterval& interval : call.addresses) {
    const bool plain = interval.first >= 0 && side_of(interval, {}) == Side::below;
    if (!plain) text += "  touches  " + to_string(interval) + "\n";
  }
  return text;
}

/// Why an operand's lowest byte is below 0, and where that call is.
std::string negative_lines(const CheckSummary& summary) {
  std::string text;
  for (const auto& [operand, reach] : summary.reach) {
    const std::string why = reach.before_base();
    if (!why.empty()) text += operand + ": " + printable(why) + "\n";
  }
  return text;
}

std::string reach_table(const CheckSummary& summary) {
  if (summary.reach.empty()) return "";
  using enum TextTable::Align;
  std::vector<TextTable::Column> columns = {
      {"offsets touched", left}, {"lowest byte", right}, {"end byte", right}};
  for (const Boundary& boundary : all_boundaries()) columns.push_back({name(boundary), left});
  TextTable table(std::move(columns));
  for (const auto& [operand, reach] : summary.reach) {
    std::vector<std::string> cells = {operand, grouped(reach.lowest.first_byte()),
                                      grouped(reach.farthest.end_byte())};
    for (const Boundary& b : all_boundaries()) cells.emplace_back(name(reach.side(b)));
    table.add(std::move(cells));
  }
  return "\n" + table.str() + negative_lines(summary);
}

std::string thread_lines(const CheckSummary& summary) {
  std::string text;
  for (const auto& [thread, calls] : by_count(summary.wrong_by_thread)) {
    text += (text.empty() ? "" : ", ") + thread + " (" + counted(calls, "call") + ")";
  }
  return text.empty() ? "" : "\nThe rules that fired cite: " + text + "\n";
}

std::string label_lines(const CheckSummary& summary, const Console& console) {
  std::string text;
  if (!summary.doubtful.empty()) {
    text += "\nLabelled only as a doubt, so not held against anybody:\n";
    for (const CheckedCall& call : summary.doubtful) {
      text += "  " + printable(call.id) + "  " + std::string(name(call.outcome())) +
              "  label: " + printable(call.label.front()) + "\n";
    }
  }
  if (!summary.differing.empty()) {
    text += "\n" + console.bad("Labels that differ") + ":\n";
    for (const CheckedCall& call : summary.differing) {
      text += "  " + printable(call.id) + "  " + std::string(name(call.outcome())) + "  " +
              printable(call.comparison.reason) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string checked_call_text(const CheckedCall& call, const Console& console) {
  if (call.outcome() == CallOutcome::ok && call.check.findings.empty() &&
      call.comparison.outcome != LabelOutcome::disagree) {
    return "";
  }
  std::string text = title(call, console);
  // Of a wrong call the reason is its first finding.
  if (call.outcome() != CallOutcome::wrong && !call.check.reason.empty()) {
    text += "  " + printable(call.check.reason) + "\n";
  }
  for (const Finding& finding : call.check.findings) {
    text += "  " + printable(to_string(finding)) + "\n";
  }
  text += address_lines(call);
  if (call.comparison.outcome != LabelOutcome::disagree) return text;
  return text + "  label differs: " + printable(call.comparison.reason) + "\n";
}

std::string closing_sentence(const CheckSummary& summary) {
  const CheckSummary::Kernel total = summary.total();
  std::string text = counted(total.calls, "call") + ": " + std::to_string(total.ok + total.wrong) +
                     " judged, " + std::to_string(total.wrong) + " wrong, " +
                     std::to_string(total.not_recorded) + " without recorded values, " +
                     std::to_string(total.unsupported) + " unsupported";
  if (summary.unread > 0) text += ", " + counted(summary.unread, "place") + " could not be read";
  return summary.early ? text + ", ended early" : text;
}

std::string check_summary_text(const CheckSummary& summary, bool expect_labels,
                               const Console& console) {
  std::string text = kernel_table(summary, console);
  if (!summary.found_by_rule.empty()) {
    text += "\nFindings beside the verdict (slow or policy):\n" +
            rule_table(summary, /*rejecting=*/false);
  }
  if (expect_labels) text += label_lines(summary, console);
  if (!summary.wrong_by_rule.empty()) {
    text += "\nWrong calls by the rule they break:\n" + rule_table(summary, /*rejecting=*/true);
    text += thread_lines(summary);
  }
  text += reach_table(summary);
  text += "\n" + closing_sentence(summary);
  if (!expect_labels) return text + ".\n";
  text += "; " + std::to_string(summary.agreeing) + " agree with their label, ";
  const std::size_t differ = summary.differing.size();
  const std::string differing = std::to_string(differ) + (differ == 1 ? " differs" : " differ");
  text += differ == 0 ? console.good(differing) : console.bad(differing);
  if (summary.unlabelled > 0)
    text += "; " + std::to_string(summary.unlabelled) + " without a label";
  const std::string wrong = std::to_string(summary.unlabelled_wrong) + " wrong";
  if (summary.unlabelled_wrong > 0) text += ", of these " + console.bad(wrong);
  return text + ".\n";
}

CaseResult as_case_result(const CheckedCall& call, bool expect_labels) {
  CaseResult result;
  result.name = call.id + ", " + call.mode + " " + call.path;
  result.problem = "captured call of " + call.file_version;
  Judgement& judgement = result.judgement;
  judgement.backend = call.kernel;
  judgement.findings = call.check.findings;
  judgement.reason = call.check.reason;
  judgement.verdict = call.check.verdict;
  judgement.repro = "attest check, call " + call.id + " at " + call.place;
  const LabelOutcome label = call.comparison.outcome;
  if (expect_labels && label != LabelOutcome::not_judged) {
    result.expected = judgement.verdict;
    if (label == LabelOutcome::disagree) result.unexpected = call.comparison.reason;
  }
  return result;
}

std::string checked_call_json(const CheckedCall& call) {
  Json json = {{"kind", "call"},
               {"id", call.id},
               {"kernel", call.kernel},
               {"mode", call.mode},
               {"path", call.path},
               {"file_version", call.file_version},
               {"place", call.place},
               {"outcome", name(call.outcome())},
               {"reason", call.check.reason},
               {"findings", Json::array()},
               {"missing", call.check.missing},
               {"addresses", Json::array()},
               {"label", call.label},
               {"comparison", name(call.comparison.outcome)},
               {"comparison_reason", call.comparison.reason}};
  for (const Finding& finding : call.check.findings) {
    json["findings"].push_back({{"rule", finding.rule},
                                {"severity", name(finding.severity)},
                                {"where", finding.where},
                                {"got", finding.got},
                                {"expected", finding.expected},
                                {"more", finding.more}});
  }
  for (const AddressInterval& interval : call.addresses) {
    json["addresses"].push_back({{"operand", interval.operand},
                                 {"element_bytes", interval.element_bytes},
                                 {"first_byte", interval.first_byte()},
                                 {"end_byte", interval.end_byte()},
                                 {"first_element", interval.first},
                                 {"end_element", interval.end}});
  }
  return dumped(json);
}

std::string unread_json(const UnreadInput& unread) {
  return dumped({{"kind", "unread"},
                 {"file", unread.file},
                 {"line", unread.line},
                 {"reason", unread.reason}});
}

std::string check_summary_json(const CheckSummary& summary, int exit_code) {
  const CheckSummary::Kernel total = summary.total();
  Json json = {{"kind", "summary"},
               {"schema", 1},
               {"exit", exit_code},
               {"calls", total.calls},
               {"ok", total.ok},
               {"wrong", total.wrong},
               {"doubtful_label", total.doubtful},
               {"agreeing", summary.agreeing},
               {"unlabelled", summary.unlabelled},
               {"unlabelled_wrong", summary.unlabelled_wrong},
               {"not_recorded", total.not_recorded},
               {"unsupported", total.unsupported},
               {"unread", summary.unread},
               {"files_left_out", summary.left_out},
               {"labels_differing", summary.differing.size()},
               {"wrong_by_rule", summary.wrong_by_rule},
               {"found_by_rule", summary.found_by_rule},
               {"wrong_by_thread", summary.wrong_by_thread},
               {"severities_by_rule", Json::object()},
               {"offsets", Json::object()},
               {"kernels", Json::object()}};
  for (const auto& [rule, severities] : summary.severities_by_rule) {
    for (const Severity severity : severities)
      json["severities_by_rule"][rule].push_back(name(severity));
  }
  for (const auto& [operand, reach] : summary.reach) {
    json["offsets"][operand] = {{"first_byte", reach.lowest.first_byte()},
                                {"end_byte", reach.farthest.end_byte()}};
  }
  for (const auto& [kernel, of] : summary.kernels) {
    json["kernels"][kernel] = {{"calls", of.calls},
                               {"ok", of.ok},
                               {"wrong", of.wrong},
                               {"doubtful_label", of.doubtful},
                               {"not_recorded", of.not_recorded},
                               {"unsupported", of.unsupported}};
  }
  return dumped(json);
}

}  // namespace attest
