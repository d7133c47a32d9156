#include "property_tests/run_screen.hpp"

#include <gtest/gtest.h>

#include "backends/registry.hpp"
#include "property_tests/report/sample_result.hpp"
#include "property_tests/report/text_pipe.hpp"

namespace attest {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What a screen prints of these results.
std::string shown(const std::vector<CaseResult>& results, std::int64_t in_full, bool launches) {
  TextPipe pipe;
  RunScreen screen(Console(pipe.writer(), "pipe", false, false), Progress(Console::silent()),
                   in_full, launches);
  screen.begins(*all_backends().front(), static_cast<std::int64_t>(results.size()));
  BackendTally tally;
  tally.backend = "scalar.unified@cpu";
  for (const CaseResult& result : results) {
    screen.launches(result.judgement.repro);
    tally.add(result);
    screen.judged(result, tally);
  }
  screen.ends(tally);
  return pipe.text();
}

TEST(RunScreen, IsSilentAboutPasses) { EXPECT_EQ(shown({sample_pass()}, 5, false), ""); }

TEST(RunScreen, PrintsTheFirstFailuresInFullAndCountsTheRest) {
  const std::string text =
      shown({sample_mismatch(), sample_mismatch(), sample_mismatch()}, 1, false);
  EXPECT_EQ(text.find("MISMATCH"), text.rfind("MISMATCH")) << text;
  EXPECT_TRUE(has(text, "scalar.unified@cpu: 2 further failures not shown; --record FILE keeps"))
      << text;
}

TEST(RunScreen, NamesAFewCasesThatWereNotJudged) {
  CaseResult doubtful = sample_pass();
  doubtful.judgement.verdict = Verdict::untrusted;
  doubtful.judgement.reason = "zeros would have passed";
  const std::string text = shown({doubtful, doubtful, doubtful, doubtful, doubtful}, 5, false);
  std::size_t lines = 0;
  for (std::size_t at = text.find("zeros would have passed"); at != std::string::npos;
       at = text.find("zeros would have passed", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 3U) << text;
  EXPECT_TRUE(has(text, "untrusted  scalar.unified@cpu  and 2 more\n")) << text;
}

TEST(RunScreen, NamesTheLinkOfAKnownFailureAndHowManyMoreThereAre) {
  CaseResult known = sample_mismatch();
  known.known = "softcap";
  known.known_issue = "https://example.org/7";
  CaseResult other = known;
  other.known = "sinks";
  const std::string text = shown({known, known, other, known, known, known}, 5, false);
  EXPECT_TRUE(has(text, "known     softcap, https://example.org/7: case 42, hard\n")) << text;
  EXPECT_TRUE(has(text, "known     softcap, https://example.org/7: and 2 more\n")) << text;
  EXPECT_TRUE(has(text, "known     sinks, https://example.org/7: case 42, hard\n")) << text;
  EXPECT_FALSE(has(text, "sinks, https://example.org/7: and")) << text;
}

TEST(RunScreen, TellsWhatWasFoundBeforeInALineAndAfterTheTable) {
  CaseResult found = sample_mismatch();
  found.found = true;
  found.fixture = "found/x.json";
  EXPECT_TRUE(has(shown({found}, 5, false), "found     still fails by hard: found/x.json: "));
  RunSummary summary;
  summary.tallies.emplace_back();
  summary.tallies[0].backend = "scalar.unified@cpu";
  summary.tallies[0].add(found);
  found.judgement = sample_pass().judgement;
  summary.tallies[0].add(found);
  const std::string text = run_summary_text(summary, Console::silent());
  EXPECT_TRUE(has(text,
                  "found     2 cases of the table are saved by earlier runs, 1 of them still "
                  "failing\n"))
      << text;
}

TEST(RunScreen, PrintsLaunchLinesWhenAsked) {
  EXPECT_EQ(shown({sample_pass()}, 5, true),
            "launch  attest run --backend scalar.unified@cpu --seed 7 --case 43\n");
}

TEST(RunScreen, EndsWithWhatFoundTheFailures) {
  RunSummary summary;
  summary.tallies.emplace_back();
  summary.tallies[0].backend = "scalar.unified@cpu";
  summary.tallies[0].add(sample_mismatch());
  const std::string text = run_summary_text(summary, Console::silent());
  EXPECT_TRUE(has(text, "failures  scalar.unified@cpu: 1 by hard\n")) << text;
}

}  // namespace
}  // namespace attest
