#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/test_support.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

class Mutants : public testing::Test, public ScratchFolder {};

TEST_F(Mutants, ThatNobodyKnowsAreAUsageError) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--mutant", "no such mutant"},
      {"--class", "trace", "--mutant", "faulty-stale_page"},
      {"--policy", "no-such-policy"},
      {"--context", "0"},
      {"--context", "512,"},
      {"--context", "99999999"},
      {"--cases", "0"}};
  for (const auto& flags : wrong) {
    std::vector<std::string> arguments = {"mutants"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Finished run = attest_cli(arguments);
    EXPECT_EQ(run.code, 64) << flags[1] << run.out;
    EXPECT_FALSE(run.err.empty()) << flags[1];
  }
  EXPECT_TRUE(has(attest_cli({"mutants", "--policy", "nope"}).err, "ggml"));
}

/// Else a run does other than it was asked, and nobody sees it.
TEST_F(Mutants, FlagsThatWouldBePassedOverAreAUsageError) {
  const std::string record = save("run.jsonl", "");
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--list", "--class", "metadata"},
                                             {"--later", "--class", "metadata"},
                                             {"--json", "--class", "metadata"},
                                             {"--mutant", "faulty", "--class", "metadata"},
                                             {"--calls", "10", "--class", "numeric"},
                                             {"--calls", "10"},
                                             {"--later", "--from", record},
                                             {"--context", "512", "--from", record}}) {
    std::vector<std::string> arguments = {"mutants"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Finished run = attest_cli(arguments);
    EXPECT_EQ(run.code, 64) << flags[0] << run.out;
    EXPECT_TRUE(has(run.err, flags[0] + ": is ")) << run.err;
  }
}

TEST_F(Mutants, ThatAreCaughtEndWithZeroAndSurvivorsWithSeven) {
  const Finished caught =
      attest_cli({"mutants", "--mutant", "faulty-causal_one_too_short.unified"});
  EXPECT_EQ(caught.code, 0) << caught.err;
  EXPECT_TRUE(has(caught.out, "killed 1 of 1")) << caught.out;
  // Its first case has no sinks.
  const Finished missed = attest_cli(
      {"mutants", "--mutant", "faulty-sink_of_next_head.decode", "--cases", "1", "--seed", "1"});
  EXPECT_EQ(missed.code, 7) << missed.out;
  EXPECT_TRUE(has(missed.err, "survived: faulty-sink_of_next_head.decode@cpu at 512 keys"))
      << missed.err;
  // A suite in use is a baseline: nothing is expected of it.
  EXPECT_EQ(attest_cli({"mutants", "--mutant", "faulty-sink_of_next_head.decode", "--cases", "1",
                        "--policy", "ggml"})
                .code,
            0);
}

TEST_F(Mutants, AreRecordedAndReportedAgain) {
  const std::string record = (folder / "run.jsonl").string();
  const std::string junit = (folder / "run.xml").string();
  const Finished run =
      attest_cli({"mutants", "--mutant", "rule:", "--json", "--record", record, "--junit", junit});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, text_of(record));
  std::istringstream lines(run.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(Json::parse(line)["kind"], "header");
  int trials = 0;
  while (std::getline(lines, line)) {
    ++trials;
    EXPECT_EQ(Json::parse(line)["outcome"], "killed") << line;
  }
  EXPECT_GT(trials, 5);
  EXPECT_TRUE(has(text_of(junit), "name=\"mutants.attest.512\""));

  const std::string page = (folder / "page.md").string();
  const Finished again = attest_cli({"mutants", "--from", record, "--markdown", page});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(text_of(page), "# Detection power"));
  EXPECT_EQ(attest_cli({"mutants", "--from", save("empty.jsonl", "")}).code, 65);
  EXPECT_EQ(attest_cli({"mutants", "--from", save("bad.jsonl", "{")}).code, 65);
}

TEST_F(Mutants, WrittenLaterAreChosenByTheirBatch) {
  const auto list = [](const std::string& flag) {
    return attest_cli({"mutants", "--list", flag}).out;
  };
  const std::string all = list("--later"), first = list("--later=first"),
                    second = list("--later=second");
  EXPECT_TRUE(has(first, "faulty-sink_scaled.unified@cpu")) << first;
  EXPECT_FALSE(has(first, "faulty-sink_not_shifted.unified@cpu")) << first;
  EXPECT_TRUE(has(second, "faulty-sink_not_shifted.unified@cpu")) << second;
  EXPECT_FALSE(has(second, "faulty-sink_scaled.unified@cpu")) << second;
  EXPECT_EQ(all.size(), first.size() + second.size());
  EXPECT_FALSE(has(all, "faulty-stale_page")) << all;
  EXPECT_EQ(attest_cli({"mutants", "--list", "--later=third"}).code, 64);
}

TEST_F(Mutants, AreListedWithTheirClassAndSource) {
  const Finished run = attest_cli({"mutants", "--list", "--mutant", "metadata:no_split_kv"});
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out, "metadata:no_split_kv  cost, metadata  sgl-project/sglang#30105\n");
}

}  // namespace
}  // namespace attest
