#include "property_tests/report/junit.hpp"

#include <gtest/gtest.h>

#include "property_tests/report/sample_result.hpp"

namespace attest {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Junit, EscapesWhatXmlCannotHold) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\"\n"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;");
  EXPECT_EQ(xml_escaped(std::string("\x01\x1b[0m", 5)), "??[0m");
  EXPECT_EQ(xml_escaped("\xff\xc3"), "??");
  EXPECT_EQ(xml_escaped("\xc2\xb5s"), "\xc2\xb5s");
}

TEST(Junit, HasASuitePerBackendWithItsEngine) {
  JunitReport report;
  report.add(sample_pass());
  CaseResult other = sample_pass();
  other.judgement.backend = "amx.extend@native";
  other.judgement.engine = "native";
  report.add(other);
  const std::string xml = report.xml({{"seed", "7"}});
  EXPECT_TRUE(has(xml, "<testsuite name=\"scalar.unified@cpu\" tests=\"1\" failures=\"0\""));
  EXPECT_TRUE(has(xml, "<property name=\"engine\" value=\"native\"/>"));
  EXPECT_TRUE(has(xml, "<property name=\"seed\" value=\"7\"/>"));
}

TEST(Junit, PutsTheWholeBlockIntoAFailure) {
  JunitReport report;
  report.add(sample_mismatch());
  const std::string xml = report.xml({});
  EXPECT_TRUE(has(xml, "failures=\"1\" errors=\"0\""));
  EXPECT_TRUE(has(xml, "<failure type=\"mismatch\""));
  EXPECT_TRUE(has(xml, "attest run --backend scalar.unified@cpu --seed 7 --case 42"));
}

TEST(Junit, SkipsWhatCouldNotRunAndFailsWhatCouldNotHaveFailed) {
  JunitReport report;
  report.add_unavailable("hip.unified@rocm", "no AMD device");
  CaseResult doubtful = sample_pass();
  doubtful.judgement.verdict = Verdict::untrusted;
  report.add(doubtful);
  const std::string xml = report.xml({});
  EXPECT_TRUE(has(xml, "<skipped message=\"unavailable: no AMD device\"/>"));
  EXPECT_TRUE(has(xml, "<failure type=\"untrusted\""));
}

TEST(Junit, LinksAKnownFailureAndFailsNothingForAFoundOneThatSaysNothing) {
  JunitReport report;
  CaseResult known = sample_mismatch();
  known.known = "softcap";
  known.known_issue = "https://example.org/7";
  report.add(known);
  CaseResult found = sample_pass();
  found.found = true;
  found.judgement.verdict = Verdict::untrusted;
  report.add(found);
  const std::string xml = report.xml({});
  EXPECT_TRUE(has(xml, "known failure softcap, https://example.org/7, mismatch: ")) << xml;
  EXPECT_TRUE(has(xml, "failures=\"0\" errors=\"0\" skipped=\"2\"")) << xml;
}

TEST(Junit, JudgesAReplayByItsExpectationAlone) {
  JunitReport report;
  CaseResult expected = sample_mismatch();
  expected.expected = Verdict::mismatch;
  report.add(expected);
  CaseResult surprising = sample_pass();
  surprising.expected = Verdict::rejected;
  surprising.unexpected = "expected rejected, got pass";
  report.add(surprising);
  const std::string xml = report.xml({});
  EXPECT_TRUE(has(xml, "tests=\"2\" failures=\"1\" errors=\"0\""));
  EXPECT_TRUE(has(xml, "message=\"expected rejected, got pass\""));
}

}  // namespace
}  // namespace attest
