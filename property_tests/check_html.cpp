#include "property_tests/check_html.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "contracts/printable.hpp"
#include "contracts/rules.hpp"
#include "property_tests/check_text.hpp"
#include "property_tests/report/build_info.hpp"
#include "property_tests/report/junit.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/severity_words.hpp"

namespace attest {
namespace {

// Nothing may be loaded or run, whatever text slipped through.
constexpr std::string_view head =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"/>\n";
constexpr std::string_view style =
    "<style>body{font:15px/1.45 sans-serif;margin:2em;max-width:90em}"
    "table{border-collapse:collapse;margin:.5em 0 2em}"
    "th,td{border:1px solid #ccc;padding:.25em .6em;text-align:left;vertical-align:top}"
    "th{background:#f2f2f2}.number{text-align:right}.wrong{color:#b00020;font-weight:bold}.fault{"
    "color:#8a3ffc;font-weight:bold}"
    ".slow{color:#8a5a00}.policy{color:#0b5cad}"
    "code{font:13px monospace;overflow-wrap:anywhere}</style>\n";

/// Text of anybody as character data or attribute value.
std::string text_of(std::string_view text) { return xml_escaped(printable(text)); }

std::string code(std::string_view text) { return "<code>" + text_of(text) + "</code>"; }
std::string number(std::int64_t value) {
  return "<span class=\"number\">" + grouped(value) + "</span>";
}

/// Cells are HTML.
std::string row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string text = "<tr>";
  for (const std::string& cell : cells) {
    text += std::string("<") + tag + ">" + cell + "</" + tag + ">";
  }
  return text + "</tr>\n";
}

std::string section(std::string_view title, const std::vector<std::string>& columns,
                    const std::string& rows) {
  return "<h2>" + std::string(title) + "</h2>\n<table>\n<thead>" + row(columns, "th") +
         "</thead>\n<tbody>\n" + rows + "</tbody>\n</table>\n";
}

/// The severity in its own colour.
std::string severity_html(Severity severity) {
  const std::string word(name(severity));
  return "<span class=\"" + word + "\">" + word + "</span>";
}

std::string kernel_table(const CheckSummary& summary) {
  std::string rows;
  for (const auto& [kernel, of] : summary.kernels) {
    rows += row({code(kernel), number(of.calls), number(of.ok), number(of.wrong),
                 number(of.not_recorded), number(of.unsupported)});
  }
  if (rows.empty()) return "";
  return section("Calls by kernel",
                 {"kernel", "calls", "ok", "wrong", "not recorded", "unsupported"}, rows);
}

std::string reach_table(const CheckSummary& summary) {
  if (summary.reach.empty()) return "";
  std::vector<std::string> columns = {"operand", "lowest byte", "end byte"};
  for (const Boundary& boundary : all_boundaries()) columns.push_back(text_of(name(boundary)));
  std::string rows, notes;
  for (const auto& [operand, reach] : summary.reach) {
    std::vector<std::string> cells = {code(operand), number(reach.lowest.first_byte()),
                                      number(reach.farthest.end_byte())};
    for (const Boundary& boundary : all_boundaries()) {
      cells.emplace_back(name(reach.side(boundary)));
    }
    rows += row(cells);
    if (const std::string why = reach.before_base(); !why.empty()) {
      notes += "<p>" + code(operand) + ": " + text_of(why) + "</p>\n";
    }
  }
  return section("Offsets touched, all calls together", columns, rows) + notes;
}

}  // namespace

void CheckHtml::add(const CheckedCall& call) {
  std::set<std::pair<Severity, std::string>> counted_for;
  for (const Finding& finding : call.check.findings) {
    const auto [at, is_new] = groups_.try_emplace({finding.severity, std::string(finding.rule)});
    Group& group = at->second;
    if (is_new) {
      group.call = call.id;
      group.place = call.place;
      group.finding = finding.where + " is " + finding.got + ", expected " + finding.expected;
    }
    group.places += 1 + finding.more;
    if (counted_for.insert(at->first).second) ++group.calls;
  }
}

void CheckHtml::add(const UnreadInput& unread) {
  if (unread_.size() < most_unread) unread_.push_back(unread);
}

std::string CheckHtml::severity_table() const {
  if (groups_.empty()) return "<p>No rule fired.</p>\n";
  std::string rows;
  for (const Severity severity :
       {Severity::wrong, Severity::fault, Severity::slow, Severity::policy}) {
    std::int64_t rules = 0;
    std::int64_t places = 0;
    for (const auto& [key, group] : groups_) {
      if (key.first != severity) continue;
      ++rules;
      places += group.places;
    }
    rows += row(
        {severity_html(severity), text_of(consequence(severity)), number(rules), number(places)});
  }
  return section("Findings by severity", {"severity", "what it does", "rules", "places"}, rows);
}

std::string CheckHtml::rule_table() const {
  if (groups_.empty()) return "";
  using Entry = decltype(groups_)::value_type;
  std::vector<const Entry*> order;
  order.reserve(groups_.size());
  for (const Entry& entry : groups_) order.push_back(&entry);
  // The enum begins with the worst; within a severity the most frequent first.
  const auto key = [](const Entry* entry) {
    return std::tuple(entry->first.first, -entry->second.calls,
                      std::string_view(entry->first.second));
  };
  std::ranges::sort(order, {}, key);
  std::string rows;
  for (const Entry* const entry : order) {
    const auto& [severity, id] = entry->first;
    const Group& group = entry->second;
    const Rule* const rule = find_rule(id);
    std::string what = code(id);
    if (rule) what += "<br/>" + text_of(rule->says);
    rows += row({what, severity_html(severity), number(group.calls), number(group.places),
                 code(group.place) + "<br/>" + text_of(group.call), text_of(group.finding),
                 rule ? text_of(rule->source) : ""});
  }
  return section("Findings by rule",
                 {"rule", "severity", "calls", "places", "first call", "its finding", "known from"},
                 rows);
}

std::string CheckHtml::unread_table(const CheckSummary& summary) const {
  if (unread_.empty()) return "";
  std::string rows;
  for (const UnreadInput& unread : unread_) {
    rows += row({code(place_of(unread)), text_of(unread.reason)});
  }
  const auto left_out = summary.unread - static_cast<std::int64_t>(unread_.size());
  if (left_out > 0) rows += row({"and " + counted(left_out, "more place"), ""});
  return section("Could not be read", {"place", "reason"}, rows);
}

std::string CheckHtml::page(const CheckSummary& summary, const std::string& source) const {
  const std::string title = "attest check " + text_of(source);
  return std::string(head) + "<title>" + title + "</title>\n" + std::string(style) +
         "</head>\n<body>\n<h1>" + title + "</h1>\n<p>" + text_of(closing_sentence(summary)) +
         "</p>\n" + severity_table() + rule_table() + unread_table(summary) +
         kernel_table(summary) + reach_table(summary) + "<p>attest " +
         text_of(build_info().version) + ", revision " + text_of(build_info().revision) +
         "</p>\n</body>\n</html>\n";
}

}  // namespace attest
