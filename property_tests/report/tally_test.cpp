#include "property_tests/report/tally.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "property_tests/report/console.hpp"
#include "property_tests/report/sample_result.hpp"

namespace attest {
namespace {

CaseResult with_verdict(Verdict verdict) {
  CaseResult result = sample_pass();
  result.judgement.verdict = verdict;
  return result;
}

BackendTally tally_of(std::initializer_list<Verdict> verdicts) {
  BackendTally tally;
  tally.backend = "scalar.unified@cpu";
  for (const Verdict verdict : verdicts) tally.add(with_verdict(verdict));
  return tally;
}

int code_of(std::initializer_list<Verdict> verdicts) {
  const std::array tallies = {tally_of(verdicts)};
  return exit_code(tallies);
}

TEST(Tally, ListsEveryVerdictAtItsOwnIndex) {
  for (std::size_t i = 0; i < all_verdicts.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(all_verdicts[i]), i);
  }
}

TEST(Tally, ExitsWithTheWorstVerdict) {
  EXPECT_EQ(code_of({Verdict::pass}), 0);
  EXPECT_EQ(code_of({Verdict::pass, Verdict::untrusted}), 5);
  EXPECT_EQ(code_of({Verdict::untrusted, Verdict::unsupported}), 3);
  EXPECT_EQ(code_of({Verdict::mismatch, Verdict::rejected}), 1);
  EXPECT_EQ(code_of({Verdict::hung, Verdict::mismatch}), 6);
}

TEST(Tally, NothingJudgedIsNotAPass) {
  EXPECT_EQ(code_of({}), exit_usage);
  EXPECT_EQ(exit_code(std::span<const BackendTally>()), exit_usage);
  EXPECT_EQ(code_of({Verdict::unsupported}), 3);
  BackendTally absent;
  absent.judges_nothing(Verdict::unavailable, "unavailable: no device");
  const std::array tallies = {absent};
  EXPECT_EQ(exit_code(tallies), 4);
}

TEST(Tally, CasesThatAreAllKnownFailNothing) {
  BackendTally tally;
  CaseResult result = sample_pass();
  result.judgement.verdict = Verdict::mismatch;
  result.known = "softcap";
  tally.add(result);
  const std::array tallies = {tally};
  EXPECT_EQ(exit_code(tallies), 0);
}

TEST(Tally, CountsACaseThatCouldNotRunHereAsACase) {
  BackendTally tally;
  CaseResult result = sample_pass();
  tally.add(result);
  result.judgement.verdict = Verdict::unavailable;
  tally.add(result);
  EXPECT_EQ(tally.cases(), 2);
  BackendTally absent;
  absent.judges_nothing(Verdict::unavailable, "unavailable: no device");
  EXPECT_EQ(absent.cases(), 0);
}

TEST(Tally, KeepsNanAsTheWorstError) {
  BackendTally tally;
  CaseResult bad = sample_pass();
  bad.judgement.worst_over_bound = std::numeric_limits<double>::quiet_NaN();
  bad.name = "case 1";
  tally.add(bad);
  tally.add(sample_mismatch());
  EXPECT_TRUE(std::isnan(tally.worst_over_bound));
  EXPECT_EQ(tally.worst_case, "case 1");
}

TEST(Tally, CountsFailuresByTheOracleThatFoundThem) {
  BackendTally tally;
  tally.add(sample_mismatch());
  tally.add(sample_mismatch());
  tally.add(sample_pass());
  EXPECT_EQ(tally.failure_kinds, (std::map<std::string, std::int64_t>{{"hard", 2}}));
  EXPECT_EQ(tally.failed(), 2);
  EXPECT_EQ(tally.cases(), 3);
  EXPECT_EQ(tally.features.at("uneven"), 3);
  EXPECT_EQ(tally.features.at("window"), 2);
}

TEST(Tally, TablesShowRareVerdictsOnlyWhenTheyHappened) {
  const std::array fine = {tally_of({Verdict::pass})};
  const std::array crashed = {tally_of({Verdict::pass, Verdict::crashed})};
  EXPECT_EQ(tally_table(fine, Console::silent()).find("crashed"), std::string::npos);
  EXPECT_NE(tally_table(crashed, Console::silent()).find("crashed"), std::string::npos);
}

TEST(Tally, TablesShowABackendThatCouldNotRunWithItsReason) {
  BackendTally absent;
  absent.backend = "hip.unified@rocm";
  absent.judges_nothing(Verdict::unavailable, "unavailable: no AMD device");
  const std::array tallies = {absent};
  const std::string text = tally_table(tallies, Console::silent());
  EXPECT_NE(text.find("hip.unified@rocm: unavailable: no AMD device\n"), std::string::npos) << text;
}

TEST(Tally, CoverageIsAShareOfTheCases) {
  BackendTally tally;
  tally.backend = "scalar.unified@cpu";
  tally.add(sample_mismatch());
  tally.add(sample_pass());
  const std::array tallies = {tally};
  EXPECT_EQ(coverage_lines(tallies), "coverage  scalar.unified@cpu: uneven 100 %, window 50 %\n");
}

TEST(Tally, CoverageOfManyBackendsIsOneForAll) {
  std::vector<BackendTally> tallies(4);
  for (BackendTally& tally : tallies) {
    tally.backend = "scalar.unified@cpu";
    tally.add(sample_pass());
  }
  tallies.front().add(sample_mismatch());
  EXPECT_EQ(coverage_lines(tallies), "coverage  all 4 backends: uneven 100 %, window 20 %\n");
  EXPECT_EQ(coverage_lines(std::span(tallies).first(3)).find("all"), std::string::npos);
}

}  // namespace
}  // namespace attest
