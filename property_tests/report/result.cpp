#include "property_tests/report/result.hpp"

namespace attest {

bool is_failure(Verdict verdict) {
  return verdict == Verdict::mismatch || verdict == Verdict::rejected ||
         verdict == Verdict::crashed || verdict == Verdict::hung;
}

bool says_nothing(const CaseResult& result) {
  const Verdict verdict = result.judgement.verdict;
  return result.found && verdict != Verdict::pass && !is_failure(verdict);
}

std::string known_in_words(const CaseResult& result) {
  return result.known_issue.empty() ? result.known : result.known + ", " + result.known_issue;
}

std::string failure_kind(const Judgement& judgement) {
  if (judgement.verdict == Verdict::mismatch) {
    for (const OracleResult& oracle : judgement.oracles) {
      if (!oracle.passed) return oracle.oracle;
    }
  }
  if (judgement.verdict == Verdict::rejected) {
    for (const Finding& finding : judgement.findings) {
      if (rejects(finding.severity)) return finding.rule;
    }
  }
  return std::string(name(judgement.verdict));
}

}  // namespace attest
