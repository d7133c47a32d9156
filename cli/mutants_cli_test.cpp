#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

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
TEST_F(Mutants, PolicyThatNobodyKnowsIsNamedBesideAll) {
  const Finished run = attest_cli({"mutants", "--policy", "all,nosuch"});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "no policy is called \"nosuch\"")) << run.err;
}

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
                                             {"--record", record, "--list"},
                                             {"--json", "--list"},
                                             {"--seed", "3", "--list"},
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
  const int planned = Json::parse(line)["planned"];
  int trials = 0;
  while (std::getline(lines, line)) {
    if (Json::parse(line)["kind"] == "summary") break;
    ++trials;
    EXPECT_EQ(Json::parse(line)["outcome"], "killed") << line;
  }
  EXPECT_GT(trials, 5);
  EXPECT_EQ(trials, planned);
  EXPECT_EQ(line, R"({"interrupted":false,"kind":"summary"})");
  EXPECT_TRUE(has(text_of(junit), "name=\"mutants.attest.512\""));

  const std::string page = (folder / "page.md").string();
  const Finished again = attest_cli({"mutants", "--from", record, "--markdown", page});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(has(text_of(page), "# Detection power"));
  EXPECT_EQ(attest_cli({"mutants", "--from", save("empty.jsonl", "")}).code, 65);
  EXPECT_EQ(attest_cli({"mutants", "--from", save("bad.jsonl", "{")}).code, 65);
}

/// A record of a part of what was planned is no pass, whatever ended the run.
TEST_F(Mutants, ThatWereNotAllTriedAreNoPass) {
  for (const int signal : {SIGINT, SIGKILL}) {
    const std::string record = (folder / ("cut" + std::to_string(signal))).string();
    Subprocess run(
        {ATTEST_BINARY, "mutants", "--class", "numeric", "--jobs", "1", "--record", record});
    ASSERT_TRUE(wait_for_lines(record, 3)) << "nothing is written while mutants are tried";
    run.send(signal);
    const Finished ended = run.finish();
    EXPECT_EQ(ended.code, signal == SIGINT ? 130 : 128 + SIGKILL) << ended.err;
    if (signal == SIGINT) {
      EXPECT_TRUE(has(ended.out, "\ncut short: ")) << ended.out;
      EXPECT_TRUE(has(ended.err, "attest: interrupted after ")) << ended.err;
    }
    const std::string junit = record + ".xml", page = record + ".md", copy = record + ".copy";
    const Finished again = attest_cli(
        {"mutants", "--from", record, "--junit", junit, "--markdown", page, "--record", copy});
    EXPECT_EQ(again.code, 7) << again.out << again.err;
    EXPECT_TRUE(has(again.out, "\ncut short: ")) << again.out;
    const std::string why = signal == SIGINT ? "interrupted" : "killed, or has not ended";
    EXPECT_TRUE(has(again.err, " trials: the run was " + why)) << again.err;
    EXPECT_TRUE(has(again.err, record + ": ")) << again.err;
    EXPECT_TRUE(has(text_of(junit), "<error message=\"cut short: ")) << text_of(junit);
    EXPECT_TRUE(has(text_of(page), "**Cut short: "));
    EXPECT_EQ(attest_cli({"mutants", "--from", copy}).code, 7) << "the copy reads as whole";
  }
}

TEST_F(Mutants, OfOneFieldSayThatTheyWereInterrupted) {
  Subprocess run({ATTEST_BINARY, "mutants", "--class", "metadata", "--calls", "1000000000"});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  run.send(SIGINT);
  const Finished ended = run.finish();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_TRUE(has(ended.err, "attest: interrupted after ")) << ended.err;
  EXPECT_TRUE(has(ended.err, " of 1000000000 changed calls")) << ended.err;
}

TEST_F(Mutants, AreWrittenIntoNoFileThatIsReadOrWrittenToo) {
  const std::string text = "{}";
  const std::string record = save("run.jsonl", text);
  const std::string out = (folder / "out").string();
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--from", record, "--record", record},
           {"--from", record, "--junit", record},
           {"--from", record, "--markdown", record},
           {"--from", record, "--from", record},
           {"--mutant", "rule:", "--record", out, "--junit", out},
           {"--mutant", "rule:", "--junit", out, "--markdown", out}}) {
    std::vector<std::string> arguments = {"mutants"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Finished run = attest_cli(arguments);
    EXPECT_EQ(run.code, 64) << flags[2] << run.out;
    EXPECT_TRUE(has(run.err, " are both ")) << run.err;
    EXPECT_EQ(text_of(record), text);
    EXPECT_FALSE(std::filesystem::exists(out));
  }
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
