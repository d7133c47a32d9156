#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/subprocess.hpp"
#include "cli/test_support.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const fs::path corpus = fs::path(ATTEST_SOURCE_DIR) / "fixtures/corpus";
const fs::path calls = corpus / "captured/sglang_calls.jsonl";

class CheckCli : public testing::Test, protected ScratchFolder {};

/// Line `number` of the captured calls, from 1.
std::string captured_line(int number) {
  std::ifstream file(calls);
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(file, line);
  return line + "\n";
}

std::ptrdiff_t count_of(const std::string& text, const std::string& part) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST_F(CheckCli, PrintsTheFileAndLineThatFixtureTakes) {
  // Line 22 is sglang-0042: draft decode without its own tokens.
  const std::string path = save("calls.jsonl", captured_line(1) + captured_line(22));
  const Finished check = attest_cli({"check", path});
  EXPECT_EQ(check.code, 2);
  EXPECT_TRUE(has(check.out, "wrong  " + path + ":2  sglang-0042")) << check.out;
  const Finished spec = attest_cli({"check", path, "--against-spec"});
  EXPECT_TRUE(has(spec.out, path + ":2  sglang-0042")) << spec.out;
  EXPECT_EQ(attest_cli({"fixture", path, "--line", "2", "--trials", "0"}).code, 0);
}

/// The same line without its label, which is the last member.
std::string unlabelled(const std::string& line) {
  return line.substr(0, line.find(",\"expected\":")) + "}\n";
}

TEST_F(CheckCli, HidesNoFindingBesideLabels) {
  const std::string path = save("calls.jsonl", captured_line(1) + unlabelled(captured_line(22)));
  const Finished check = attest_cli({"check", path, "--expect-labels"});
  EXPECT_EQ(check.code, 2);
  EXPECT_TRUE(has(check.out, "wrong  " + path + ":2  sglang-0042")) << check.out;
  EXPECT_TRUE(has(check.out, "1 without a label, of these 1 wrong")) << check.out;
}

TEST_F(CheckCli, SaysWhatALimitMayBe) {
  const Finished check = attest_cli({"check", calls.string(), "--limit", "-1"});
  EXPECT_EQ(check.code, 64);
  EXPECT_TRUE(has(check.err, "'-1' is not a whole number from 0 to")) << check.err;
}

TEST_F(CheckCli, NamesTheOtherCommandForTheOtherKindOfFile) {
  const fs::path fixture = corpus / "regressions/sglang-30105.no_split_kv.json";
  const Finished check = attest_cli({"check", fixture.string()});
  EXPECT_EQ(check.code, 65);
  EXPECT_TRUE(has(check.err, "a fixture, no captured call: attest replay")) << check.err;
  for (const std::string& text : {captured_line(1), captured_line(1) + captured_line(22)}) {
    const Finished replay = attest_cli({"replay", save("call.json", text)});
    EXPECT_EQ(replay.code, 65);
    EXPECT_TRUE(has(replay.err, "captured call")) << replay.err;
    EXPECT_TRUE(has(replay.err, "attest check")) << replay.err;
  }
}

TEST_F(CheckCli, BoundsWhatEveryWayOfCheckingPrints) {
  for (const char* const way : {"--against-spec", "--steps", "--group"}) {
    const Finished one = attest_cli({"check", calls.string(), way, "--limit", "1"});
    const Finished all = attest_cli({"check", calls.string(), way, "--limit", "0"});
    EXPECT_EQ(one.code, all.code) << way;
    EXPECT_EQ(count_of(one.out, " more"), 1 + count_of(one.out, "(and ")) << way << one.out;
    EXPECT_TRUE(has(one.out, "(--limit 0 shows all)")) << way << one.out;
    EXPECT_FALSE(has(all.out, "--limit 0")) << way;
    EXPECT_LT(one.out.size(), all.out.size()) << way;
  }
}

/// A standard input that stays open: a call, a line that is none, then nothing until Ctrl-C.
TEST_F(CheckCli, EndsAtCtrlCWithWhatItHasRead) {
  for (const std::string way : {"", " --steps", " --against-spec"}) {
    const fs::path pipe = folder / "pipe", out = folder / "out.txt", err = folder / "err.txt";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    Subprocess run({"/bin/sh", "-c",
                    "exec " + std::string(ATTEST_BINARY) + " check -" + way + " < " +
                        pipe.string() + " > " + out.string() + " 2> " + err.string()});
    std::ofstream writer(pipe);  // waits for the reader
    writer << captured_line(22) << "no call\n" << std::flush;
    ASSERT_TRUE(wait_for_lines(err, 1)) << way;  // told at once
    run.send(SIGINT);
    EXPECT_EQ(run.finish().code, 130) << way;
    EXPECT_TRUE(has(text_of(out), "nded early")) << way << text_of(out);
    EXPECT_FALSE(has(text_of(out), "no layer has two calls")) << "nobody knows";
    fs::remove(pipe);
    fs::remove(err);
  }
}

TEST_F(CheckCli, CapturedCallsAgreeWithTheirLabels) {
  const Finished check = attest_cli({"check", (corpus / "captured").string(), "--expect-labels"});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(has(check.out, "191 calls: ")) << check.out;
  EXPECT_TRUE(has(check.out, "unified_attention"));
  EXPECT_TRUE(has(check.out, " 0 differ.")) << check.out;
}

TEST_F(CheckCli, WrongCapturedCallExitsTwo) {
  EXPECT_EQ(attest_cli({"check", (corpus / "captured").string(), "--limit", "1"}).code, 2);
}

TEST_F(CheckCli, ReadsStandardInputAndWritesJson) {
  std::ifstream file(calls);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Finished check = attest_cli({"check", "-", "--json"}, {}, line + "\n");
  std::istringstream stream(check.out);
  std::string first;
  std::string last;
  std::getline(stream, first);
  std::getline(stream, last);
  EXPECT_EQ(Json::parse(first)["id"], Json::parse(line)["id"]);
  EXPECT_EQ(Json::parse(last)["calls"], 1);
}

TEST_F(CheckCli, SaysEqualFindingsOnce) {
  const std::string folder = (corpus / "captured").string();
  const Finished each = attest_cli({"check", folder, "--limit", "0"});
  const Finished grouped = attest_cli({"check", folder, "--group"});
  EXPECT_EQ(grouped.code, 2);
  EXPECT_TRUE(has(grouped.out, "calls like\nwrong")) << grouped.out;
  EXPECT_LT(grouped.out.size(), each.out.size());
  EXPECT_TRUE(has(grouped.out, "191 calls: ")) << grouped.out;
}

TEST_F(CheckCli, LeavesOutFilesOlderThanAsked) {
  const std::string line = captured_line(1);
  const std::filesystem::path old = save("old.jsonl", line);
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(3));
  const std::string folder = old.parent_path().string();
  EXPECT_TRUE(has(attest_cli({"check", folder, "--since", "4h"}).out, "1 call: "));
  const Finished none = attest_cli({"check", folder, "--since", "2h"});
  EXPECT_EQ(none.code, 3) << none.out << none.err;
  EXPECT_TRUE(has(none.out, "0 calls: ")) << none.out;
  const std::string why =
      "1 file left out, last written more than 2h ago (--since): nothing was left to judge.\n";
  EXPECT_TRUE(has(none.out, why)) << none.out;
  for (const char* const way : {"--steps", "--against-spec"}) {
    EXPECT_TRUE(has(attest_cli({"check", folder, "--since", "2h", way}).out, why)) << way;
  }
  for (const char* const way : {"--steps", "--against-spec", "--expect-labels"}) {
    EXPECT_EQ(attest_cli({"check", folder, "--since", "2h", way}).code, 3) << way;
  }
  const Finished json = attest_cli({"check", folder, "--since", "2h", "--json"});
  EXPECT_EQ(Json::parse(json.out)["files_left_out"], 1);
  save("new.jsonl", line);
  EXPECT_TRUE(has(attest_cli({"check", folder, "--since", "2h"}).out, "1 file left out, ")) << why;
  EXPECT_EQ(attest_cli({"check", folder, "--since", "yesterday"}).code, 64);
  const Finished file_alone = attest_cli({"check", old.string(), "--since", "2h"});
  EXPECT_EQ(file_alone.code, 64);
  EXPECT_TRUE(has(file_alone.err, "--since is about the files of a folder, and " + old.string()));
  EXPECT_EQ(attest_cli({"check", "--since", "2h"}, {}, line).code, 64);
}

TEST_F(CheckCli, WritesAPageThatLoadsNothing) {
  const fs::path page = folder / "page.html";
  const Finished check =
      attest_cli({"check", (corpus / "captured").string(), "--json", "--html", page.string()});
  EXPECT_EQ(check.code, 2) << check.err;
  const std::string text = text_of(page);
  EXPECT_TRUE(text.starts_with("<!DOCTYPE html>")) << text.substr(0, 200);
  EXPECT_TRUE(has(text, "191 calls: ")) << text.substr(0, 2000);
  EXPECT_TRUE(has(text, "sglang_calls.jsonl:"));
  for (const char* const loads : {"<script", "<link", "<img", "src=", "href=", "url("}) {
    EXPECT_FALSE(has(text, loads)) << loads;
  }
}

TEST_F(CheckCli, HostileCapturedCallExitsSixtyFive) {
  EXPECT_EQ(attest_cli({"check", "-"}, {}, "{\"id\": 3").code, 65);
  EXPECT_EQ(attest_cli({"check", "-"}, {}, "").code, 65);
  EXPECT_EQ(attest_cli({"check", "/nonexistent"}).code, 65);
}

TEST_F(CheckCli, ComparesWithTheSpecificationAndAcrossCalls) {
  const std::string captured = (corpus / "captured").string();
  const Finished spec = attest_cli({"check", captured, "--against-spec", "--limit", "0"});
  EXPECT_EQ(spec.code, 1);
  EXPECT_TRUE(has(spec.out, "expected 2, got 4  (rejected by ")) << spec.out.substr(0, 400);
  EXPECT_TRUE(has(spec.out, "191 calls: "));
  const Finished steps = attest_cli({"check", captured, "--steps"});
  EXPECT_EQ(steps.code, 2);
  EXPECT_TRUE(has(steps.out, "step.window_agrees"));
}

/// Standard input is a file as well.
TEST_F(CheckCli, RefusesAReportOntoWhatItReadsAsStandardInput) {
  const std::string line = captured_line(22);
  const std::string file = save("calls.jsonl", line);
  for (const std::string& command : {std::string("check - --html "), std::string("fixture - -o "),
                                     std::string("check --junit ")}) {
    const std::string shell = std::string(ATTEST_BINARY) + " " + command + file + " < " + file;
    Subprocess sh({"/bin/sh", "-c", shell});
    const Finished ended = sh.finish();
    EXPECT_EQ(ended.code, 64) << command << ended.out << ended.err;
    EXPECT_EQ(text_of(file), line) << command;
  }
}

TEST_F(CheckCli, RefusesReportsOfVerdictsThatItDoesNotMake) {
  const std::string captured = (corpus / "captured").string();
  for (const char* const comparing : {"--against-spec", "--steps"}) {
    for (const char* const flag : {"--json", "--group", "--expect-labels"}) {
      EXPECT_EQ(attest_cli({"check", captured, comparing, flag}).code, 64) << comparing << flag;
    }
    const fs::path out = folder / "out";
    EXPECT_EQ(attest_cli({"check", captured, comparing, "--html", out.string()}).code, 64);
    EXPECT_FALSE(fs::exists(out));
  }
}

}  // namespace
}  // namespace attest
