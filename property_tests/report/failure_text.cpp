#include "property_tests/report/failure_text.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "contracts/printable.hpp"
#include "property_tests/report/numbers.hpp"

namespace attest {
namespace {

constexpr std::size_t max_findings = 5;

std::string line(std::string_view label, std::string_view text) {
  std::string out = "  " + std::string(label);
  out.append(label.size() < 10 ? 10 - label.size() : 1, ' ');
  return out + printable(text) + "\n";
}

std::string places(const OracleResult& oracle) {
  const std::string how_far =
      std::isfinite(oracle.worst) ? short_number(oracle.worst) + " x the limit; " : "";
  return " (" + how_far + std::to_string(oracle.failures) + " of " +
         std::to_string(oracle.compared) + " places" + (how_far.empty() ? ")" : " over it)");
}

std::string oracle_lines(const Judgement& judgement) {
  std::string text;
  for (const OracleResult& oracle : judgement.oracles) {
    if (oracle.passed) continue;
    text += line("oracle", oracle.oracle + ": " + oracle.detail + places(oracle));
  }
  return text;
}

std::string finding_lines(const Judgement& judgement) {
  std::string text;
  const std::size_t shown = std::min(judgement.findings.size(), max_findings);
  for (std::size_t i = 0; i < shown; ++i) {
    text += line("rule", to_string(judgement.findings[i]));
  }
  if (judgement.findings.size() > shown) {
    text += line("", "and " + counted(static_cast<std::int64_t>(judgement.findings.size() - shown),
                                      "more finding"));
  }
  return text;
}

/// Whether an oracle's or a rule's own line says what the reason says.
bool said_below(const Judgement& judgement) {
  const std::string& reason = judgement.reason;
  const auto oracle = std::find_if(
      judgement.oracles.begin(), judgement.oracles.end(),
      [&](const OracleResult& o) { return !o.passed && o.oracle + ": " + o.detail == reason; });
  if (oracle != judgement.oracles.end()) return true;
  const auto shown = judgement.findings.begin() +
                     static_cast<std::ptrdiff_t>(std::min(judgement.findings.size(), max_findings));
  return std::any_of(judgement.findings.begin(), shown,
                     [&](const Finding& finding) { return to_string(finding) == reason; });
}

/// The judge names an engine before it knows whether there will be a launch.
bool was_launched(const Judgement& judgement) {
  switch (judgement.verdict) {
    case Verdict::rejected:
    case Verdict::unavailable:
    case Verdict::unsupported:
      return false;
    default:
      return true;
  }
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

}  // namespace

std::string found_by(const Judgement& judgement) {
  if (!is_failure(judgement.verdict)) return "";
  const std::string kind = failure_kind(judgement);
  return "  by " + (kind == name(judgement.verdict) ? judgement.reason : kind);
}

std::string failure_text(const CaseResult& result, const Console& console) {
  const Judgement& judgement = result.judgement;
  std::string text = console.as(judgement.verdict, upper(name(judgement.verdict))) + "  " +
                     judgement.backend + "  " + printable(result.name) + "\n";
  text += line("problem", result.problem);
  if (was_launched(judgement) && !judgement.engine.empty()) {
    text += line("ran on",
                 judgement.engine + (judgement.form.empty() ? "" : ", form " + judgement.form));
  }
  if (!judgement.sampled.empty()) text += line("sampled", judgement.sampled);
  if (!result.unexpected.empty()) text += line("expected", result.unexpected);
  if (!judgement.reason.empty() && !said_below(judgement)) text += line("reason", judgement.reason);
  text += oracle_lines(judgement);
  text += finding_lines(judgement);
  for (const std::string& lint : judgement.lints) text += line("lint", lint);
  if (judgement.verdict == Verdict::mismatch || !judgement.diagnosis.empty()) {
    text += line("diagnosis", judgement.diagnosis.empty() ? "none found" : judgement.diagnosis);
  }
  if (!result.shrunk.empty()) text += line("shrunk", result.shrunk);
  const bool replayed = !result.rules.empty();
  if (!result.fixture.empty()) text += line(replayed ? "fixture" : "saved", result.fixture);
  text += "  again     " + console.bold(printable(judgement.repro)) + "\n";
  return text;
}

std::string result_line(const CaseResult& result, const Console& console) {
  const Judgement& judgement = result.judgement;
  std::string verdict(name(judgement.verdict));
  verdict.append(verdict.size() < 11 ? 11 - verdict.size() : 0, ' ');
  std::string text = console.as(judgement.verdict, verdict) + "  " + judgement.backend + "  " +
                     printable(result.name) + "  " + duration(judgement.seconds);
  text += printable(found_by(judgement));
  if (judgement.verdict == Verdict::pass || judgement.verdict == Verdict::mismatch) {
    text += "  error/bound " + short_number(judgement.worst_over_bound);
  } else if (!is_failure(judgement.verdict)) {
    text += "  " + printable(judgement.reason);
  }
  if (!result.unexpected.empty())
    text += "  " + console.bad("UNEXPECTED: " + printable(result.unexpected));
  return text + "\n";
}

}  // namespace attest
