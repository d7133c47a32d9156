#include "property_tests/replay_text.hpp"

#include <algorithm>
#include <set>

#include "contracts/printable.hpp"
#include "property_tests/report/failure_text.hpp"
#include "property_tests/report/numbers.hpp"
#include "property_tests/report/text_table.hpp"

namespace attest {
namespace {

/// "rejected by seq_lens.counts_...", "mismatch by hard", "unsupported".
std::string cell(const CaseResult& result, const Console& console) {
  const Judgement& judgement = result.judgement;
  std::string text = console.as(judgement.verdict, name(judgement.verdict));
  if (const std::string by = found_by(judgement); !by.empty()) text += printable(by.substr(1));
  if (judgement.verdict == Verdict::pass && !judgement.findings.empty()) {
    const Finding& finding = judgement.findings.front();
    text += ", " + std::string(name(finding.severity)) + " by " + finding.rule;
  }
  if (!result.unexpected.empty()) text += " " + console.bad("UNEXPECTED");
  return text;
}

std::string title(const CaseResult& result, const Console& console) {
  const std::string name = result.name.substr(0, result.name.find(','));
  return console.bold(printable(name)) +
         (result.story.empty() ? "" : ": " + printable(result.story)) + "\n";
}

/// The finding that decided, or the first one: its array, value and expectation.
std::string finding_said(const Judgement& judgement) {
  const auto& findings = judgement.findings;
  if (findings.empty()) return "";
  const auto decided = std::find_if(findings.begin(), findings.end(),
                                    [](const Finding& f) { return rejects(f.severity); });
  const std::string text = to_string(decided == findings.end() ? findings.front() : *decided);
  return text.substr(text.find(": ") + 2);
}

std::string judge_said(const Judgement& judgement) {
  if (judgement.verdict != Verdict::mismatch) return "";
  return judgement.diagnosis.empty() ? judgement.reason : judgement.diagnosis;
}

/// What the metadata rule and the judge of the numbers had against the side with the fault.
std::string reasons(std::span<const CaseResult> results) {
  std::vector<std::string> said;
  const auto say = [&](std::string text) {
    if (text.empty() || std::find(said.begin(), said.end(), text) != said.end()) return;
    said.push_back(std::move(text));
  };
  for (const CaseResult& result : results) {
    if (result.side != "with the fault") continue;
    say(finding_said(result.judgement));
    say(judge_said(result.judgement));
  }
  std::string text;
  for (const std::string& line : said) {
    text +=
        (text.empty() ? "  because            " : "                     ") + printable(line) + "\n";
  }
  return text;
}

/// The fixtures that say nothing of the backend for one reason.
struct Unjudged {
  std::string words;         ///< behind "3 fixtures"
  std::string first_reason;  ///< of several
  std::set<std::string> fixtures;
};

std::string words_of(const CaseResult& result) {
  const std::string& reason = result.judgement.reason;
  switch (result.applies) {
    case Applies::other_signature:
      return " of " + reason.substr(reason.rfind(' ') + 1) +
             ", which is not the backend's signature";
    case Applies::unsupported:
      return " with a side that the backend does not support";
    case Applies::fault_of_another_kernel:
      return ", their side with the fault: it is another kernel's own";
    case Applies::yes:
      break;
  }
  return "";
}

/// Once for each backend that cannot run here.
std::string unavailable_lines(std::span<const CaseResult> results) {
  std::vector<std::string> said;
  std::string text;
  for (const CaseResult& result : results) {
    const Judgement& judgement = result.judgement;
    if (judgement.verdict != Verdict::unavailable) continue;
    if (std::ranges::find(said, judgement.backend) != said.end()) continue;
    said.push_back(judgement.backend);
    text += "  unavailable        " + printable(judgement.backend + ": " + judgement.reason) + "\n";
  }
  return text;
}

}  // namespace

std::string not_judged_text(std::span<const CaseResult> results) {
  std::vector<Unjudged> groups;
  for (const CaseResult& result : results) {
    if (result.applies == Applies::yes) continue;
    const std::string words = words_of(result);
    auto at = std::ranges::find(groups, words, &Unjudged::words);
    if (at == groups.end()) {
      const bool tells = result.applies == Applies::unsupported;
      at = groups.insert(at, {words, tells ? result.judgement.reason : "", {}});
    }
    at->fixtures.insert(result.fixture);
  }
  std::string text;
  for (const Unjudged& group : groups) {
    text += "not judged: " + counted(static_cast<std::int64_t>(group.fixtures.size()), "fixture") +
            group.words;
    if (!group.first_reason.empty()) text += " (the first: " + printable(group.first_reason) + ")";
    text += "\n";
  }
  return text;
}

std::string replay_text(std::span<const CaseResult> results, const Console& console) {
  using enum TextTable::Align;
  TextTable table({{"", left}, {"", left}, {"", left}, {"", right}, {"", left}});
  for (std::size_t i = 0; i < results.size();) {
    const CaseResult& first = results[i];
    std::vector<std::string> row = {
        "  " + (first.side.empty() ? std::string("as it is") : first.side),
        first.rules + ": " + cell(first, console), ""};
    double seconds = first.judgement.seconds;
    const bool paired = i + 1 < results.size() && results[i + 1].side == first.side &&
                        results[i + 1].judgement.backend == first.judgement.backend;
    if (paired) {
      row[2] = results[i + 1].rules + ": " + cell(results[i + 1], console);
      seconds += results[i + 1].judgement.seconds;
    }
    row.insert(row.end(), {duration(seconds), first.judgement.backend});
    table.add(std::move(row));
    i += paired ? 2 : 1;
  }
  return title(results.front(), console) + table.str() + reasons(results) +
         unavailable_lines(results);
}

}  // namespace attest
