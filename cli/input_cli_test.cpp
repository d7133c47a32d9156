#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/test_support.hpp"
#include "memory/sanitizers.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path corpus = fs::path(ATTEST_SOURCE_DIR) / "fixtures" / "corpus";

/// Any fixture of the corpus, as text.
std::string some_fixture() {
  for (const auto& entry : fs::recursive_directory_iterator(corpus / "regressions")) {
    if (entry.path().extension() == ".json") return text_of(entry.path());
  }
  ADD_FAILURE() << "fixtures/corpus/regressions is empty";
  return "{}";
}

class InputCli : public testing::Test, protected ScratchFolder {};

TEST_F(InputCli, TruncatedFixtureExitsSixtyFiveAndNamesTheFile) {
  const std::string text = some_fixture();
  const std::string path = save("truncated.json", text.substr(0, text.size() / 2));
  const Finished replay = attest_cli({"replay", path});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.err, "attest: " + path)) << replay.err;
}

TEST_F(InputCli, FixtureOfAnotherSchemaExitsSixtyFive) {
  Json json = Json::parse(some_fixture());
  json["schema"] = 99;
  const Finished replay = attest_cli({"replay", save("newer.json", json.dump())});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.err, "/schema")) << replay.err;
}

TEST_F(InputCli, HostileFixtureExitsSixtyFive) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(attest_cli({"replay", save("deep.json", deep)}).code, 65);
  EXPECT_EQ(attest_cli({"replay", save("binary.json", std::string("\0\xff\x01", 3))}).code, 65);
  EXPECT_EQ(attest_cli({"replay", save("empty.json", "")}).code, 65);
  EXPECT_EQ(attest_cli({"replay", "/nonexistent.json"}).code, 65);
}

/// The file, not only its stem: a folder may have many of that name.
TEST_F(InputCli, WrongNamesInAFixtureAreToldWithItsFile) {
  Json json = Json::parse(text_of(corpus / "accept" / "unified.decode.json"));
  json["fault"] = "no_such_fault";
  json["expect"] = {{"faulty", {{"enforced", "rejected"}}}};
  const std::string fault = save("fault.json", json.dump());
  EXPECT_TRUE(has(attest_cli({"replay", fault}).err,
                  "attest: " + fault + ": /fault: \"no_such_fault\" is not a fault of a call"));
  json.erase("fault");
  json["backend"] = "scaler.unified";
  const std::string backend = save("backend.json", json.dump());
  const Finished replay = attest_cli({"replay", backend});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.err, "attest: " + backend + ": /backend: no backend is named \"scaler"))
      << replay.err;
}

TEST_F(InputCli, StepFaultOfAFixtureOfOneStepExitsSixtyFive) {
  Json json = Json::parse(text_of(corpus / "accept" / "unified.decode.json"));
  json["fault"] = "lengths_of_the_captured_step";
  json["expect"] = {{"faulty", {{"enforced", "rejected"}}}};
  const Finished replay = attest_cli({"replay", save("one_step.json", json.dump())});
  EXPECT_EQ(replay.code, 65) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.err, "/fault: \"lengths_of_the_captured_step\" is one between two steps"))
      << replay.err;
}

TEST_F(InputCli, HugeStrideIsUnsupportedWithTheReason) {
  Json json = Json::parse(text_of(corpus / "accept" / "unified.decode.json"));
  json["problem"]["pool"]["k"] = {{"page", std::int64_t{1} << 40}};
  json["problem"]["pool"]["v"] = json["problem"]["pool"]["k"];
  const Finished replay = attest_cli({"replay", save("wide.json", json.dump())});
  EXPECT_EQ(replay.code, 7) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "expected pass, got unsupported (k of shape ")) << replay.out;
  EXPECT_TRUE(has(replay.out, "reaches past 274877906944 bytes")) << replay.out;
}

TEST_F(InputCli, MemoryThatRunsOutExitsSeventyAndTellsWhatWasJudged) {
  if (needs_all_addresses) GTEST_SKIP() << "no limit on addresses under a sanitizer";
  const std::string first = save("a_first.json", some_fixture());
  Json json = Json::parse(text_of(corpus / "accept" / "decode.gqa.json"));
  json["problem"].erase("context_len");
  json["problem"]["pool"] = {{"page_size", 1}, {"num_pages", 1 << 23}};
  json["problem"]["requests"] = {{{"committed", 4'000'000}, {"new_tokens", 1}}};
  const std::string second = save("b_large.json", json.dump());
  const Finished replay = Subprocess({"/bin/sh", "-c",
                                      "ulimit -v 150000; exec " + std::string(ATTEST_BINARY) +
                                          " replay --rules enforce " + first + " " + second})
                              .finish();
  EXPECT_EQ(replay.code, 70) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "with the fault")) << replay.out;
  EXPECT_TRUE(has(replay.out, "ended early.")) << replay.out;
  EXPECT_TRUE(has(replay.err, "ended in " + second + "\nattest: out of memory")) << replay.err;
}

TEST_F(InputCli, BadFixtureDoesNotHideTheOthers) {
  const std::string bad = save("a_bad.json", "{");
  const std::string good = save("b_good.json", some_fixture());
  const Finished replay = attest_cli({"replay", bad, good});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.out, "b_good")) << replay.out;
  EXPECT_TRUE(has(replay.out, "1 of the files could not be read")) << replay.out;
  EXPECT_FALSE(has(replay.out, "all as expected")) << replay.out;
}

TEST_F(InputCli, RegressionsReplayAsTheyPromise) {
  const Finished replay = attest_cli({"replay", (corpus / "regressions").string()});
  EXPECT_EQ(replay.code, 0) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "with the fault     enforced: rejected by ")) << replay.out;
  EXPECT_TRUE(has(replay.out, "without the fault  enforced: pass")) << replay.out;
  EXPECT_TRUE(has(replay.out, "all as expected.")) << replay.out;
}

TEST_F(InputCli, WrongExpectationExitsSeven) {
  Json json = Json::parse(some_fixture());
  json["expect"]["fixed"] = {{"enforced", "mismatch"}, {"reported", "mismatch"}};
  const Finished replay = attest_cli({"replay", save("wrong.json", json.dump())});
  EXPECT_EQ(replay.code, 7) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "expected mismatch, got pass")) << replay.out;
}

TEST_F(InputCli, ReplayJsonIsOneObjectALine) {
  const Finished replay = attest_cli({"replay", "--json", save("fixture.json", some_fixture())});
  std::istringstream stream(replay.out);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  ASSERT_GE(lines.size(), 3U);
  EXPECT_EQ(lines.front()["kind"], "header");
  EXPECT_TRUE(lines[1].contains("expected"));
  EXPECT_EQ(lines.back()["unexpected"], 0);
}

TEST_F(InputCli, OneFileForTwoReportsIsRefusedBeforeAnythingIsWritten) {
  const std::string out = (folder / "out").string();
  const std::string again = (folder / "." / "out").string();
  fs::create_symlink("out", folder / "link");
  const std::string link = (folder / "link").string();
  for (const std::string& other : {out, again, link}) {
    const Finished run = attest_cli(
        {"run", "--backend", "scalar", "--cases", "1", "--record", out, "--junit", other});
    EXPECT_EQ(run.code, 64) << run.out;
    EXPECT_TRUE(has(run.err, "--record and --junit are both ")) << run.err;
  }
  EXPECT_FALSE(fs::exists(out));
  const std::string fixture = save("fixture.json", some_fixture());
  EXPECT_EQ(attest_cli({"replay", fixture, "--record", out, "--junit", out}).code, 64);
  EXPECT_EQ(attest_cli({"replay", fixture, "--junit", fixture}).code, 64);
  EXPECT_EQ(text_of(fixture), some_fixture());
  EXPECT_EQ(attest_cli({"check", "-", "--html", out, "--junit", out}, {}, "").code, 64);
  EXPECT_EQ(attest_cli({"run", "--backend", "scalar.decode", "--cases", "1", "--max-kv", "32",
                        "--record", "/dev/null", "--junit", "/dev/null"})
                .code,
            0)
      << "a device may take both";
}

TEST_F(InputCli, FixtureOfACapturedCallReplays) {
  const std::string calls = (corpus / "captured" / "sglang_calls.jsonl").string();
  const fs::path out = folder / "small.json";
  // Line 22 is sglang-0042: draft decode without its own tokens.
  const Finished fixture = attest_cli({"fixture", calls, "--line", "22", "-o", out.string()});
  ASSERT_EQ(fixture.code, 0) << fixture.err;
  EXPECT_TRUE(has(fixture.err, "seqused_k.counts_this_steps_tokens: draft_decode 1 req"))
      << fixture.err;
  const Finished replay = attest_cli({"replay", out.string()});
  EXPECT_EQ(replay.code, 0) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "all as expected.")) << replay.out;
  const Finished printed = attest_cli({"fixture", calls, "--line", "22"});
  EXPECT_EQ(printed.out, text_of(out));
}

TEST_F(InputCli, FixtureSaysWhichCallItMissesOrCannotShow) {
  const std::string calls = (corpus / "captured" / "sglang_calls.jsonl").string();
  EXPECT_EQ(attest_cli({"fixture", calls}).code, 64);
  EXPECT_EQ(attest_cli({"fixture", calls, "--line", "999"}).code, 65);
  const Finished near =
      attest_cli({"fixture", calls, "--line", "1", "--rule", "seqused_k.is_int46"});
  EXPECT_EQ(near.code, 64);
  EXPECT_TRUE(has(near.err, "did you mean seqused_k.is_int64?")) << near.err;
  EXPECT_EQ(attest_cli({"fixture", calls, "--line", "1", "-o", calls}).code, 64);
  const Finished right = attest_cli({"fixture", calls, "--line", "1"});
  EXPECT_EQ(right.code, 3);
  EXPECT_TRUE(has(right.err, "nothing is wrong with this call")) << right.err;
  const std::string bad = save("bad.jsonl", "{\n{}\n");
  const Finished unread = attest_cli({"fixture", bad, "--line", "2"});
  EXPECT_EQ(unread.code, 65) << unread.err;
  EXPECT_TRUE(has(unread.err, "bad.jsonl")) << unread.err;
}

TEST_F(InputCli, MutantsPrintTheirMatrix) {
  const Finished mutants = attest_cli({"mutants", "--class", "metadata", "--calls", "70"});
  EXPECT_EQ(mutants.code, 0) << mutants.err;
  EXPECT_TRUE(has(mutants.out, "| field: change | calls | rejected |"));
  EXPECT_EQ(attest_cli({"mutants", "--class", "kernels"}).code, 64);
}

}  // namespace
}  // namespace attest
