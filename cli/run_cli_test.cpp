#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "cli/test_support.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* faulty = "faulty-first_key_ignored.unified@cpu";

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

class RunCli : public testing::Test, protected ScratchFolder {};

TEST_F(RunCli, PassExitsZeroWithATable) {
  const Finished run = attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "8"}));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  for (const char* word : {"seed 1", "cases [0, 8)", "backend", "mismatch", "rejected",
                           "unsupported", "untrusted", "error/bound", "coverage"}) {
    EXPECT_TRUE(has(run.out, word)) << word << "\n" << run.out;
  }
}

TEST_F(RunCli, MismatchExitsOneWithALineThatGetsItAgain) {
  const Finished run =
      attest_cli(arguments({"--backend", faulty, "--cases", "4", "--shrink-time", "2"}));
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_TRUE(has(run.out, "MISMATCH  faulty-first_key_ignored.unified@cpu")) << run.out;
  EXPECT_TRUE(has(run.out, "run --backend faulty-first_key_ignored.unified@cpu --seed 1 --case"));
  EXPECT_FALSE(fs::is_empty(folder / "found"));
}

TEST_F(RunCli, RejectedExitsTwo) {
  const Finished run =
      attest_cli(arguments({"--backend", "scalar.unified@cpu", "--fault", "seqused_k_short_by_one",
                            "--cases", "6", "--shrink-time", "0"}));
  EXPECT_EQ(run.code, 2) << run.out;
  EXPECT_TRUE(has(run.out, "REJECTED")) << run.out;
}

TEST_F(RunCli, RulesReportedLetTheKernelRun) {
  const Finished run =
      attest_cli(arguments({"--backend", "scalar.unified@cpu", "--fault", "seqused_k_short_by_one",
                            "--cases", "6", "--rules=report", "--shrink-time", "0"}));
  EXPECT_EQ(run.code, 1) << run.out;
}

TEST_F(RunCli, NothingSupportedExitsThree) {
  const Finished run = attest_cli(arguments(
      {"--backend", "scalar.unified@cpu", "--fault", "mla_page_size_of_pool", "--cases", "3"}));
  EXPECT_EQ(run.code, 3) << run.out;
}

TEST_F(RunCli, CaseThatCouldNotHaveFailedExitsFive) {
  // Recall data whose few heads look for other keys than the newest.
  const Finished run = attest_cli(
      arguments({"--backend", "scalar.decode@cpu", "--recipe", "recall", "--case", "9"}));
  EXPECT_EQ(run.code, 5) << run.out;
  EXPECT_TRUE(has(run.out, "untrusted    scalar.decode@cpu  case 9")) << run.out;
  EXPECT_TRUE(has(run.out, "a kernel that ignores each row's newest key would pass")) << run.out;
}

TEST_F(RunCli, CrashOrHangOfAKernelExitsSixAndTheRunGoesOn) {
  const Finished crash =
      attest_cli(arguments({"--backend", "faulty-crash.unified@cpu,scalar.unified@cpu", "--cases",
                            "2", "--shrink-time", "0"}));
  EXPECT_EQ(crash.code, 6) << crash.out;
  EXPECT_TRUE(has(crash.out, "signal 11")) << crash.out;
  EXPECT_TRUE(has(crash.out, "coverage  scalar.unified@cpu")) << crash.out;
  const Finished hang = attest_cli(
      arguments({"--backend", "faulty-hang.unified@cpu", "--cases", "1", "--time-limit", "0.2"}));
  EXPECT_EQ(hang.code, 6) << hang.out;
  EXPECT_TRUE(has(hang.out, "HUNG")) << hang.out;
}

TEST_F(RunCli, InterruptDoesNotWaitForAKernelThatHangs) {
  std::vector<std::string> argv = {ATTEST_BINARY};
  const fs::path record = folder / "run.jsonl";
  for (const std::string& argument :
       arguments({"--backend", "scalar.unified@cpu,faulty-hang.unified@cpu", "--cases", "2",
                  "--time-limit", "3600", "--record", record.string()})) {
    argv.push_back(argument);
  }
  Subprocess run(argv);
  ASSERT_TRUE(wait_for_lines(record, 3)) << "stays short";
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.send(SIGINT);
  const Finished finished = run.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_TRUE(has(finished.out, "faulty-hang.unified@cpu: interrupted after 0 of 2 cases"))
      << finished.out;
  EXPECT_EQ(lines_of(text_of(record)).back()["backends"][0]["cases"], 2);
}

TEST_F(RunCli, UnmetRequirementExitsFourBeforeAnythingRuns) {
  const Finished run = attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "3"}),
                                  {{"ATTEST_REQUIRE", "nokernel@silicon"}});
  EXPECT_EQ(run.code, 4);
  EXPECT_TRUE(has(run.err, "nokernel@silicon")) << run.err;
  EXPECT_FALSE(has(run.out, "coverage"));
}

TEST_F(RunCli, RequiredEngineThatDidNotRunExitsFour) {
  const Finished run = attest_cli(arguments({"--backend", "faulty-window_ignored.unified@cpu",
                                             "--cases", "3", "--fault", "mla_page_size_of_pool"}),
                                  {{"ATTEST_REQUIRE", "scalar@cpu"}});
  EXPECT_TRUE(has(run.err, "ATTEST_REQUIRE names scalar@cpu, and no case ran on it")) << run.err;
  EXPECT_NE(run.code, 0);
}

TEST_F(RunCli, CaughtFaultsExitZeroWhereThatIsExpected) {
  EXPECT_EQ(attest_cli(arguments({"--backend", faulty, "--cases", "20", "--expect-caught",
                                  "--shrink-time", "0"}))
                .code,
            0);
  const std::vector<std::string> honest = {"--backend", "scalar.unified@cpu", "--cases", "2",
                                           "--expect-caught"};
  EXPECT_EQ(attest_cli(arguments(honest)).code, 7);
}

TEST_F(RunCli, JsonOnStandardOutputIsTheRecordAlone) {
  const Finished run =
      attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "5", "--json"}));
  EXPECT_EQ(run.code, 0);
  const std::vector<Json> lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(lines.front()["kind"], "header");
  EXPECT_EQ(lines.front()["arguments"][0], "run");
  for (std::size_t i = 1; i <= 5; ++i) EXPECT_EQ(lines[i]["kind"], "case");
  EXPECT_EQ(lines.back()["kind"], "summary");
  EXPECT_EQ(lines.back()["backends"][0]["pass"], 5);
  EXPECT_TRUE(has(run.err, "coverage"));
}

TEST_F(RunCli, ShardsJudgeExactlyTheSameCases) {
  std::multiset<std::string> whole;
  std::multiset<std::string> parts;
  const auto judged = [&](const std::string& shard, std::multiset<std::string>& into) {
    const Finished run = attest_cli(arguments(
        {"--backend", "scalar.unified@cpu", "--cases", "10", "--json", "--shard", shard}));
    for (const Json& line : lines_of(run.out)) {
      if (line["kind"] == "case") into.insert(line["name"].dump() + line["problem"].dump());
    }
  };
  judged("1/1", whole);
  for (const char* shard : {"1/3", "2/3", "3/3"}) judged(shard, parts);
  EXPECT_EQ(whole.size(), 10U);
  EXPECT_EQ(whole, parts);
}

TEST_F(RunCli, JunitIsWellFormedXml) {
  const fs::path junit = folder / "junit.xml";
  attest_cli(arguments(
      {"--backend", faulty, "--cases", "3", "--shrink-time", "0", "--junit", junit.string()}));
  const Finished parsed =
      Subprocess({"/usr/bin/env", "python3", "-c",
                  "import sys, xml.etree.ElementTree as t; r = t.parse(sys.argv[1]).getroot();"
                  "print(r.tag, len(r.findall('testsuite/testcase')))",
                  junit.string()})
          .finish();
  ASSERT_EQ(parsed.code, 0) << parsed.err;
  EXPECT_EQ(parsed.out, "testsuites 3\n");
}

TEST_F(RunCli, FullDiskUnderTheRecordExitsSeventyFourWithTheTable) {
  const Finished run = attest_cli(
      arguments({"--backend", "scalar.unified@cpu", "--cases", "5", "--record", "/dev/full"}));
  EXPECT_EQ(run.code, 74);
  EXPECT_TRUE(has(run.err, "attest: writing /dev/full: No space left on device")) << run.err;
}

TEST_F(RunCli, FixtureThatCannotBeWrittenExitsSeventyFourAfterTellingTheFailure) {
  std::vector<std::string> all = arguments({"--backend", faulty, "--cases", "5"});
  all[6] = "/proc/nowhere";
  all.insert(all.end(), {"--shrink-time", "0"});
  const Finished run = attest_cli(all);
  EXPECT_EQ(run.code, 74) << run.out;
  EXPECT_TRUE(has(run.err, "attest: --out /proc/nowhere: making it: ")) << run.err;
  EXPECT_TRUE(has(run.out, "MISMATCH")) << run.out;
  EXPECT_TRUE(has(run.out, "ended by an error after")) << run.out;
}

TEST_F(RunCli, FullStandardOutputExitsSeventyFour) {
  const std::string command = std::string(ATTEST_BINARY) + " explain > /dev/full";
  const Finished run = Subprocess({"/bin/sh", "-c", command}).finish();
  EXPECT_EQ(run.code, 74);
  EXPECT_TRUE(has(run.err, "standard output: No space left on device")) << run.err;
}

TEST_F(RunCli, ClosedPipeEndsQuietly) {
  const Finished run =
      Subprocess({"/bin/bash", "-c",
                  std::string(ATTEST_BINARY) +
                      " run --backend scalar.unified@cpu --cases 100000 --max-kv 32 --json 2>"
                      "/dev/null | head -n 2 | wc -l; echo ${PIPESTATUS[0]}"})
          .finish();
  EXPECT_EQ(run.out, "2\n74\n");
  EXPECT_EQ(run.err, "");
}

TEST_F(RunCli, InterruptKeepsTheRecordAndPrintsTheTable) {
  const fs::path record = folder / "run.jsonl";
  std::vector<std::string> argv = {ATTEST_BINARY};
  for (const std::string& argument : arguments({"--backend", "scalar.unified@cpu", "--cases",
                                                "1000000", "--record", record.string()})) {
    argv.push_back(argument);
  }
  Subprocess run(argv);
  ASSERT_TRUE(wait_for_lines(record, 5)) << "stays short";
  run.send(SIGINT);
  const Finished finished = run.finish();
  EXPECT_EQ(finished.code, 130);
  EXPECT_TRUE(has(finished.out, "scalar.unified@cpu: interrupted after")) << finished.out;
  const std::vector<Json> lines = lines_of(text_of(record));
  ASSERT_GE(lines.size(), 6U);
  EXPECT_EQ(lines.back()["kind"], "summary");
  EXPECT_EQ(lines.back()["interrupted"], true);
  EXPECT_EQ(lines.back()["exit"], 130);
  EXPECT_EQ(lines.back()["backends"][0]["cases"], lines.size() - 2);
}

TEST_F(RunCli, PipedOutputHasNoEscapeCodes) {
  const Finished run =
      attest_cli(arguments({"--backend", faulty, "--cases", "2", "--shrink-time", "0"}));
  EXPECT_FALSE(has(run.out, "\x1b")) << run.out;
  EXPECT_FALSE(has(run.err, "\x1b")) << run.err;
}

TEST_F(RunCli, TerminalHasColourUnlessNoColorIsSet) {
  // script(1) gives the program a terminal.
  const std::string command = std::string(ATTEST_BINARY) + " explain";
  const Finished coloured = Subprocess({"/usr/bin/env", "script", "-qec", command, "/dev/null"},
                                       {{"TERM", "xterm"}, {"NO_COLOR", ""}})
                                .finish();
  if (coloured.code == 127) GTEST_SKIP() << "script(1) is not installed";
  EXPECT_TRUE(has(coloured.out, "\x1b[")) << coloured.out;
  const Finished plain = Subprocess({"/usr/bin/env", "script", "-qec", command, "/dev/null"},
                                    {{"TERM", "xterm"}, {"NO_COLOR", "1"}})
                             .finish();
  EXPECT_FALSE(has(plain.out, "\x1b[")) << plain.out;
}

TEST_F(RunCli, JudgesACellOfTheLatticeWithItsRulesReported) {
  const Finished run =
      attest_cli({"run", "--profile", "large-kv", "--case", "8", "--backend",
                  "faulty-wrap-bytes_int32.unified@cpu", "--out", folder.string(), "--quiet"});
  EXPECT_EQ(run.code, 1) << run.out << run.err;
  EXPECT_TRUE(has(run.out, "rules report")) << run.out;
  EXPECT_TRUE(has(run.out, "offset of K wrapped at 2^31 bytes: slot ")) << run.out;
  EXPECT_TRUE(has(run.out, "--profile large-kv --case 8 --rules=report")) << run.out;
  EXPECT_TRUE(has(run.out, "passed of judged")) << run.out;
}

TEST_F(RunCli, RefusesAProfileOrASizeItDoesNotKnow) {
  EXPECT_EQ(attest_cli({"run", "--profile", "huge"}).code, 64);
  EXPECT_EQ(attest_cli({"run", "--profile", "large-kv", "--memory", "much"}).code, 64);
}

}  // namespace
}  // namespace attest
