#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/subprocess.hpp"
#include "cli/test_support.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

const fs::path calls = fs::path(ATTEST_SOURCE_DIR) / "fixtures/corpus/captured/sglang_calls.jsonl";

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
  const fs::path corpus = fs::path(ATTEST_SOURCE_DIR) / "fixtures/corpus";
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

}  // namespace
}  // namespace attest
