#include "property_tests/check_calls.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <memory>
#include <regex>
#include <set>

#include "contracts/rules.hpp"
#include "contracts/verdict.hpp"

namespace attest {

std::string_view name(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::ok:
      return "ok";
    case CallOutcome::wrong:
      return "wrong";
    case CallOutcome::not_recorded:
      return "not recorded";
    case CallOutcome::unsupported:
      return "unsupported";
  }
  return "";
}

CallOutcome CheckedCall::outcome() const {
  if (check.verdict == Verdict::pass) return CallOutcome::ok;
  if (check.verdict == Verdict::rejected) return CallOutcome::wrong;
  return check.missing.empty() ? CallOutcome::unsupported : CallOutcome::not_recorded;
}

bool CheckedCall::surprises() const {
  if (comparison.outcome == LabelOutcome::disagree) return true;
  const bool agrees = comparison.outcome == LabelOutcome::agree;
  return outcome() == CallOutcome::wrong && !agrees;
}

std::vector<std::string> threads_in(std::string_view source) {
  static const std::regex thread("[\\w.-]+/[\\w.-]+#\\d+");
  const std::string text(source);
  std::vector<std::string> threads;
  for (std::sregex_iterator match(text.begin(), text.end(), thread), end; match != end; ++match) {
    threads.push_back(match->str());
  }
  return threads;
}

CheckedCall check_call(const CapturedCall& captured) {
  CheckedCall checked{.id = captured.id,
                      .kernel = captured.kernel,
                      .mode = captured.mode,
                      .path = captured.path,
                      .file_version = captured.file_version,
                      .place = place_of({captured.file, captured.line, ""}),
                      .label = captured.expected,
                      .check = check_captured(captured),
                      .comparison = {},
                      .addresses = {}};
  checked.comparison = compare_label(captured, checked.check);
  if (captured.call) checked.addresses = address_intervals(*captured.call);
  return checked;
}

std::int64_t read_calls(const std::string& source,
                        const std::function<void(const CapturedCall&)>& each,
                        std::optional<std::filesystem::file_time_type> since,
                        const UnreadSink& unread, const BetweenLines& between) {
  if (source != "-") {
    return read_captured(std::filesystem::path(source), each, since, unread, between);
  }
  read_captured(std::cin, "standard input", each, unread, between);
  return 0;
}

std::optional<std::chrono::seconds> age_from_text(std::string_view text) {
  struct Unit {
    char letter;
    std::int64_t seconds;
  };
  static constexpr std::array units = {Unit{'s', 1}, Unit{'m', 60}, Unit{'h', 3600},
                                       Unit{'d', 86'400}};
  if (text.empty()) return std::nullopt;
  const auto* const unit = std::ranges::find(units, text.back(), &Unit::letter);
  std::int64_t count = 0;
  const char* const end = std::to_address(text.end()) - 1;
  const auto [stop, error] = std::from_chars(std::to_address(text.begin()), end, count);
  // A century is more than anybody has recorded, and keeps the product from overflowing.
  if (unit == units.end() || error != std::errc() || stop != end || count < 0 || count > 36'500) {
    return std::nullopt;
  }
  return std::chrono::seconds(count * unit->seconds);
}

Side Reach::side(const Boundary& boundary) const {
  const Side low = side_of(lowest, boundary);
  return low == side_of(farthest, boundary) ? low : Side::straddling;
}

std::string Reach::before_base() const {
  if (lowest.first >= 0) return "";
  return "begins before its first element, for a page, slot or row that the metadata name is below "
         "0; lowest in " +
         lowest_place;
}

void CheckSummary::add(const CheckedCall& call) {
  Kernel& kernel = kernels[call.kernel];
  const CallOutcome outcome = call.outcome();
  ++kernel.calls;
  kernel.ok += outcome == CallOutcome::ok ? 1 : 0;
  kernel.wrong += outcome == CallOutcome::wrong ? 1 : 0;
  kernel.not_recorded += outcome == CallOutcome::not_recorded ? 1 : 0;
  kernel.unsupported += outcome == CallOutcome::unsupported ? 1 : 0;
  std::set<std::string> rejecting;
  std::set<std::string> others;
  for (const Finding& finding : call.check.findings) {
    (rejects(finding.severity) ? rejecting : others).insert(finding.rule);
    severities_by_rule[finding.rule].insert(finding.severity);
  }
  std::set<std::string> threads;
  for (const std::string& id : rejecting) {
    ++wrong_by_rule[id];
    const Rule* rule = find_rule(id);
    const auto named = threads_in(rule == nullptr ? "" : rule->source);
    if (!named.empty()) threads.insert(named.front());
  }
  for (const std::string& thread : threads) ++wrong_by_thread[thread];
  for (const std::string& rule : others) ++found_by_rule[rule];
  for (const AddressInterval& interval : call.addresses) {
    Reach& of =
        reach.try_emplace(interval.operand, Reach{interval, interval, call.place}).first->second;
    if (interval.first_byte() < of.lowest.first_byte()) {
      of.lowest = interval;
      of.lowest_place = call.place;
    }
    if (interval.end_byte() > of.farthest.end_byte()) of.farthest = interval;
  }
  const bool no_label = call.judged() && call.comparison.outcome == LabelOutcome::not_judged;
  unlabelled += no_label ? 1 : 0;
  unlabelled_wrong += no_label && outcome == CallOutcome::wrong ? 1 : 0;
  agreeing += call.comparison.outcome == LabelOutcome::agree ? 1 : 0;
  if (call.comparison.outcome == LabelOutcome::disagree) differing.push_back(call);
  if (call.comparison.outcome == LabelOutcome::unsure) {
    ++kernel.doubtful;
    doubtful.push_back(call);
  }
}

CheckSummary::Kernel CheckSummary::total() const {
  Kernel sum;
  for (const auto& [kernel, one] : kernels) {
    sum.calls += one.calls;
    sum.ok += one.ok;
    sum.wrong += one.wrong;
    sum.doubtful += one.doubtful;
    sum.not_recorded += one.not_recorded;
    sum.unsupported += one.unsupported;
  }
  return sum;
}

int check_exit_code(const CheckSummary& summary, bool expect_labels) {
  const CheckSummary::Kernel total = summary.total();
  if (summary.unread > 0) return exit_bad_input;
  if (total.calls == 0) return exit_usage;
  if (total.ok + total.wrong == 0) return exit_code(Verdict::unsupported);
  if (expect_labels) {
    if (!summary.differing.empty()) return exit_expectation;
    if (summary.unlabelled_wrong > 0) return exit_code(Verdict::rejected);
    // Labels that nobody compared are not labels that agree.
    return summary.agreeing > 0 ? 0 : exit_code(Verdict::unsupported);
  }
  return total.wrong > 0 ? exit_code(Verdict::rejected) : 0;
}

}  // namespace attest
