#include "property_tests/report/failure_text.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "property_tests/report/sample_result.hpp"

namespace attest {
namespace {

// Approved output: a change of the words is a change of this file, and is reviewed as one.
std::string approved(const std::string& name) {
  std::ifstream file(std::string(ATTEST_SOURCE_DIR) + "/property_tests/report/approved/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(FailureText, OfAMismatchReadsAsApproved) {
  EXPECT_EQ(failure_text(sample_mismatch(), Console::silent()), approved("mismatch.txt"));
}

TEST(FailureText, OfARejectionNamesRuleArrayValueAndExpectation) {
  CaseResult result = sample_mismatch();
  result.judgement.verdict = Verdict::rejected;
  result.judgement.oracles.clear();
  result.judgement.findings = {{.rule = "seqused_k.counts_this_steps_tokens",
                                .severity = Severity::wrong,
                                .where = "seqused_k[2]",
                                .got = "131",
                                .expected = "134 = 131 committed + 3 new"}};
  result.judgement.reason = to_string(result.judgement.findings.front());
  result.shrunk.clear();
  result.fixture.clear();
  EXPECT_EQ(failure_text(result, Console::silent()), approved("rejected.txt"));
}

TEST(FailureText, SaysAReasonThatNoOracleAndNoRuleSays) {
  CaseResult result = sample_mismatch();
  result.judgement.verdict = Verdict::crashed;
  result.judgement.reason = "signal 11 (Segmentation fault)";
  EXPECT_NE(failure_text(result, Console::silent()).find("  reason    signal 11 (Segm"),
            std::string::npos);
}

TEST(FailureText, OfWhatWasNotLaunchedNamesNothingItRanOn) {
  CaseResult result = sample_mismatch();
  EXPECT_NE(failure_text(result, Console::silent()).find("  ran on    "), std::string::npos);
  for (const Verdict verdict : {Verdict::rejected, Verdict::unsupported, Verdict::unavailable}) {
    result.judgement.verdict = verdict;
    EXPECT_EQ(failure_text(result, Console::silent()).find("  ran on    "), std::string::npos)
        << name(verdict);
  }
}

TEST(FailureText, SaysTheReasonWhereItsFindingIsNotShown) {
  CaseResult result = sample_mismatch();
  Judgement& judgement = result.judgement;
  judgement.findings.assign(6, judgement.findings.front());
  judgement.findings.back().where = "q";
  judgement.reason = to_string(judgement.findings.back());
  EXPECT_NE(failure_text(result, Console::silent()).find("  reason    " + judgement.reason),
            std::string::npos);
}

TEST(FailureText, CountsFindingsItDoesNotShow) {
  CaseResult result = sample_mismatch();
  result.judgement.findings.assign(8, result.judgement.findings.front());
  EXPECT_NE(failure_text(result, Console::silent()).find("and 3 more findings"), std::string::npos);
}

TEST(FailureText, LineOfAFailureNamesWhatFoundIt) {
  EXPECT_EQ(result_line(sample_mismatch(), Console::silent()),
            "mismatch     scalar.unified@cpu  case 42  0.25 s  by hard  error/bound 412\n");
}

TEST(FailureText, LineOfASurpriseSaysWhatWasExpected) {
  CaseResult result = sample_pass();
  result.expected = Verdict::mismatch;
  result.unexpected = "expected mismatch, got pass";
  EXPECT_EQ(result_line(result, Console::silent()),
            "pass         scalar.unified@cpu  case 43  0.01 s  error/bound 0.31"
            "  UNEXPECTED: expected mismatch, got pass\n");
}

}  // namespace
}  // namespace attest
