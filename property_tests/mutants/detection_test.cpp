#include "property_tests/mutants/detection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures/fixture_error.hpp"

namespace attest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Detection sample() {
  Detection run{.commands = {"attest mutants --record a/b.jsonl --cases 4"},
                .revision = "abc",
                .compiler = "GNU",
                .cpu = "a|b",
                .cores = 2};
  run.trials.push_back({.mutant = "faulty-stale_page.unified@cpu",
                        .keys = 512,
                        .outcome = Outcome::killed,
                        .killed_by = "hard",
                        .oracles = {"hard", "z"},
                        .numbers_by = "hard",
                        .cases = 3,
                        .numbers_cases = 3,
                        .seconds = 0.5,
                        .says = "a \"case\"\n",
                        .diagnosis = "stale",
                        .honest_cases = 1,
                        .shrunk_requests = 2,
                        .shrunk_trials = 40,
                        .shrunk = "small"});
  run.trials.push_back({.mutant = "faulty-first_row_repeated.mla_decode@cpu",
                        .keys = 512,
                        .outcome = Outcome::survived,
                        .cases = 7});
  run.trials.push_back({.mutant = "faulty-stale_page.unified@cpu",
                        .keys = 512,
                        .policy = "ggml",
                        .outcome = Outcome::survived,
                        .cases = 7});
  return run;
}

TEST(Detection, ReadsBackWhatItRecorded) {
  const Detection run = sample();
  Detection read;
  add_recorded(detection_json(run), "record", read);
  EXPECT_EQ(detection_json(read), detection_json(run));
  ASSERT_EQ(read.trials.size(), 3U);
  EXPECT_EQ(read.trials[0].says, "a \"case\"\n");
  EXPECT_THAT(read.trials[0].oracles, ElementsAre("hard", "z"));
}

TEST(Detection, SaysWhichRecordsWereCutShort) {
  Detection run = sample();
  run.missing = 4;
  Detection read;
  add_recorded(detection_json(run), "cut", read);
  add_recorded(detection_json(sample()), "whole", read);
  EXPECT_EQ(read.missing, 4);
  EXPECT_THAT(read.cut_short, ElementsAre("cut: 3 of 7 trials: the run was interrupted"));
  EXPECT_THAT(complaints(read), Contains(read.cut_short[0]));
  EXPECT_THAT(detection_text(read), HasSubstr("cut short: 6 of 10 planned trials"));
  // A killed run has no last line, and several records may stand in one file.
  const std::string killed = header_line(run) + "\n" + trial_line(run.trials[0]) + "\n";
  Detection both;
  add_recorded(killed + killed, "two", both);
  EXPECT_EQ(both.missing, 12);
  EXPECT_EQ(both.cut_short.size(), 2U);
  EXPECT_THAT(both.cut_short[0], HasSubstr("1 of 7 trials: the run was killed"));
  // Killed while it wrote a line.
  Detection half;
  add_recorded(killed + trial_line(run.trials[1]).substr(0, 40), "half", half);
  EXPECT_EQ(half.trials.size(), 1U);
  EXPECT_THAT(half.cut_short,
              ElementsAre("half: 1 of 7 trials: the run was killed, or has not ended"));
  // More than was planned is no record of that run.
  run.missing = -1;
  EXPECT_THROW(add_recorded(detection_json(run), "odd", half), FixtureError);
  // Older versions wrote all at the end, and did not say what was planned.
  Detection old;
  add_recorded(
      R"({"kind":"header","schema":1,"commands":[],"revision":"","compiler":"","cpu":"","cores":1})",
      "old", old);
  EXPECT_EQ(old.missing, 0);
}

TEST(Detection, NamesTheLineThatDoesNotRead) {
  Detection read;
  try {
    add_recorded(detection_json(sample()) + "{\"kind\": \"mutant\"}\n", "run.jsonl", read);
    FAIL();
  } catch (const FixtureError& error) {
    EXPECT_STREQ(error.what(),
                 "run.jsonl, line 6: /: the key \"mutant\" is missing; there are \"kind\"");
  }
  // Other JSON, and wrong values: the place and the value, no word of a library.
  for (const auto& [line, what] :
       {std::pair{R"({"a": 1})", "run.jsonl, line 1: /: the key \"kind\" is missing"},
        {R"({"kind": "case"})",
         "run.jsonl, line 1: /kind: \"case\", expected one of header, mutant"},
        {R"({"kind": "header", "schema": 2})", "run.jsonl, line 1: /schema: "},
        {R"({"kind": "mutant", "mutant": 3})",
         "run.jsonl, line 1: /kind: \"mutant\" before the record's header"},
        {R"({"kind": "summary", "interrupted": true})",
         "run.jsonl, line 1: /kind: \"summary\" before the record's header"},
        {"[1]", "run.jsonl, line 1: /: an array, expected an object"}}) {
    try {
      add_recorded(line, "run.jsonl", read);
      ADD_FAILURE() << line;
    } catch (const FixtureError& error) {
      EXPECT_THAT(error.what(), StartsWith(what));
    }
  }
}

/// Sums are made of them: a number no campaign can have is no record.
TEST(Detection, RefusesNumbersThatNoCampaignHas) {
  const std::string good = detection_json(sample());
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    Detection read;
    EXPECT_THROW(add_recorded(text, "run.jsonl", read), FixtureError) << to;
  };
  refused("\"honest_cases\":1", "\"honest_cases\":-1");
  refused("\"honest_cases\":1", "\"honest_cases\":9223372036854775807");
  refused("\"cases\":7", "\"cases\":-7");
  refused("\"keys\":512", "\"keys\":0");
  refused("\"seconds\":0.5", "\"seconds\":-0.5");
  refused("\"seconds\":0.5", "\"seconds\":1e300");
  refused("\"shrunk_trials\":40", "\"shrunk_trials\":-40");
  refused("\"later\":false", "\"later\":\"no\"");
  refused("\"later\":false", "\"latter\":false");
  refused("\"cores\":", "\"cores\":-");
}

TEST(Detection, ComplainsOfSurvivorsAndFalseFailuresOfItsOwnOraclesAlone) {
  Detection run = sample();
  EXPECT_THAT(complaints(run), ElementsAre(HasSubstr("first_row_repeated")));
  run.trials[1].outcome = Outcome::killed;
  EXPECT_THAT(complaints(run), IsEmpty());
  run.trials[0].false_failures = 1;
  run.trials[0].false_failure = "scalar: hard";
  EXPECT_THAT(complaints(run), ElementsAre(HasSubstr("scalar: hard")));
}

TEST(Detection, ComplainsOfAnEquivalentMutantThatWasCaught) {
  Detection run;
  run.trials.push_back({.mutant = "faulty-sum_of_rounded_p.unified@cpu",
                        .keys = 512,
                        .outcome = Outcome::killed,
                        .killed_by = "hard"});
  EXPECT_THAT(complaints(run), ElementsAre(HasSubstr("declared equivalent")));
}

TEST(Detection, TakesABugForSurvivedWhenOneStandInDid) {
  const std::vector<HandedBug> bugs = {
      {.id = "b", .stands = "faulty-stale_page, faulty-first_row_repeated"},
      {.id = "c", .stands = "faulty-stale_page"},
      {.id = "d"}};
  const auto outcomes = bugs_in(sample(), 512, "attest", bugs);
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(outcomes[0].outcome, Outcome::survived);
  EXPECT_EQ(outcomes[1].outcome, Outcome::killed);
  EXPECT_EQ(outcomes[2].outcome, Outcome::not_run);
}

TEST(Detection, WritesTablesOfWhatWasRecordedOnly) {
  const std::string text = detection_markdown(sample());
  EXPECT_THAT(text, HasSubstr("    attest mutants --cases 4\n"));
  EXPECT_THAT(text, HasSubstr("| numeric | 1 of 2 |"));
  EXPECT_THAT(text, HasSubstr("| ggml, test-backend-ops | uniform on (-1, 1) |"));
  EXPECT_THAT(text, Not(HasSubstr("FlashAttention |")));
  EXPECT_THAT(text, HasSubstr("`faulty-first_row_repeated.mla_decode@cpu` at 512: 7 cases"));
  EXPECT_THAT(text, HasSubstr("All 76 of the list"));
}

TEST(Detection, TellsMutantsWrittenAfterTheOraclesApart) {
  Detection run = sample();
  EXPECT_THAT(detection_text(run), Not(HasSubstr("later")));
  EXPECT_THAT(detection_markdown(run), Not(HasSubstr("written after")));
  run.trials.push_back({.mutant = "faulty-sink_scaled.unified@cpu",
                        .keys = 512,
                        .outcome = Outcome::killed,
                        .killed_by = "lse"});
  EXPECT_THAT(detection_text(run), HasSubstr("  later       killed 1 of 1"));
  EXPECT_THAT(detection_text(run), HasSubstr("  before      killed 1 of 2"));
  EXPECT_THAT(detection_markdown(run), HasSubstr("| written after | 1 of 1 |"));
  EXPECT_THAT(detection_markdown(run),
              HasSubstr("| written before the oracles were fixed | 1 of 2 |"));
  EXPECT_THAT(detection_text(run), Not(HasSubstr("later 1")));
  EXPECT_THAT(detection_json(run), HasSubstr("\"batch\":1"));
  EXPECT_THAT(detection_json(run), HasSubstr("\"later\":true"));
  EXPECT_THAT(detection_json(run), HasSubstr("\"later\":false"));
}

TEST(Detection, TellsTwoBatchesOfLaterMutantsApart) {
  Detection run;
  for (const char* const mutant :
       {"faulty-sink_scaled.unified@cpu", "faulty-sink_not_shifted.unified@cpu"}) {
    run.trials.push_back(
        {.mutant = mutant, .keys = 512, .outcome = Outcome::killed, .killed_by = "lse"});
  }
  run.trials.back().outcome = Outcome::survived;
  EXPECT_THAT(detection_text(run), HasSubstr("  later 1     killed 1 of 1"));
  EXPECT_THAT(detection_text(run), HasSubstr("  later 2     killed 0 of 1"));
  EXPECT_THAT(detection_json(run), HasSubstr("\"batch\":2"));
}

TEST(Detection, WritesAJunitSuitePerContextAndPolicy) {
  const std::string xml = detection_junit(sample());
  EXPECT_THAT(xml, HasSubstr("name=\"mutants.attest.512\" tests=\"2\" failures=\"1\""));
  EXPECT_THAT(xml, HasSubstr("name=\"mutants.ggml.512\" tests=\"1\""));
}

}  // namespace
}  // namespace attest
