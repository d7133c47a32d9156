#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/test_support.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* faulty = "faulty-first_key_ignored.unified@cpu";

class KnownCli : public testing::Test, protected ScratchFolder {
 protected:
  std::string list(const std::string& backend, const std::string& expires) const {
    return save("known.json", R"({"schema": 1, "known": [{"name": "first key", "issue": "link",
      "expires": ")" + expires + R"(", "backend": ")" +
                                  backend + "\"}]}");
  }
};

TEST_F(KnownCli, FoundFailuresComeFirstInTheNextRunAndFailIt) {
  const auto flags = arguments({"--backend", faulty, "--cases", "3", "--shrink-time", "1"});
  EXPECT_EQ(attest_cli(flags).code, 1);
  const Finished again = attest_cli(flags);
  EXPECT_EQ(again.code, 1);
  const std::size_t found = again.out.find("found     still fails by ");
  ASSERT_NE(found, std::string::npos) << again.out;
  EXPECT_LT(found, again.out.find("MISMATCH"));
  auto skips = flags;
  skips.insert(skips.end(), {"--found", "skip"});
  EXPECT_FALSE(has(attest_cli(skips).out, "found  ")) << again.out;
  // Another backend has found nothing.
  const Finished other = attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "3"}));
  EXPECT_EQ(other.code, 0);
  EXPECT_FALSE(has(other.out, "found  "));
}

/// One that hangs is no reason to stay: the run's limits are those of new cases.
TEST_F(KnownCli, AFoundFailureKeepsToTheBudget) {
  const auto flags = [&](const std::string& limit) {
    return arguments(
        {"--backend", "faulty-hang.unified@cpu", "--cases", "1", "--time-limit", limit});
  };
  EXPECT_EQ(attest_cli(flags("0.2")).code, 6);
  auto within = flags("3600");
  within.insert(within.end(), {"--budget", "0.3", "--json"});
  const Finished run = attest_cli(within);
  EXPECT_EQ(run.code, 3) << "no verdict is neither a pass nor a mistake in the flags";
  EXPECT_TRUE(has(run.err,
                  "faulty-hang.unified@cpu: out of time after 0 of 2 cases: none ended within its "
                  "part of --budget; what earlier runs saved comes first (--found skip: not)"))
      << run.err;
  EXPECT_TRUE(has(run.out, "{\"kind\":\"summary\"")) << run.out;
}

/// The stream alone would pass: the only failure is the one that was found before.
TEST_F(KnownCli, AFoundFailureAloneIsAFailure) {
  EXPECT_EQ(attest_cli(arguments({"--backend", faulty, "--cases", "3", "--shrink-time", "0"})).code,
            1);
  for (const auto& file : fs::directory_iterator(folder / "found")) {
    std::ifstream in(file.path());
    auto fixture = nlohmann::json::parse(in);
    fixture["backend"] = "scalar.unified@cpu";
    fixture["fault"] = "seqused_k_short_by_one";
    fixture["expect"] = {{"faulty", {{"enforced", "rejected"}, {"reported", "mismatch"}}}};
    std::ofstream(file.path()) << fixture;
  }
  const fs::path junit = folder / "junit.xml";
  const Finished run = attest_cli(
      arguments({"--backend", "scalar.unified@cpu", "--cases", "3", "--junit", junit.string()}));
  EXPECT_EQ(run.code, 2) << run.out << run.err;
  EXPECT_TRUE(has(run.out, "found     still fails by seqused_k.")) << run.out;
  EXPECT_TRUE(has(run.out, " of them still failing\n")) << run.out;
  EXPECT_FALSE(has(text_of(junit), "failures=\"0\"")) << text_of(junit);
}

TEST_F(KnownCli, TheRecordsSummaryCountsWhatWasFoundBefore) {
  const auto flags = arguments(
      {"--backend", faulty, "--cases", "3", "--shrink-time", "0", "--max-failures", "1", "--json"});
  EXPECT_EQ(attest_cli(flags).code, 1);
  const Finished again = attest_cli(flags);
  EXPECT_EQ(again.code, 1);
  const std::size_t last = again.out.rfind("{\"kind\":\"summary\"");
  ASSERT_NE(last, std::string::npos) << again.out;
  const auto summary = nlohmann::json::parse(again.out.substr(last));
  EXPECT_EQ(summary["exit"], 1);
  EXPECT_EQ(summary["backends"][0]["mismatch"], 1) << summary;
  EXPECT_EQ(summary["backends"][0]["found_failed"], 1) << summary;
  EXPECT_TRUE(has(again.out, "\"found\":true")) << again.out;
}

TEST_F(KnownCli, ABrokenFixtureIsNamedAndTheRunGoesOn) {
  fs::create_directories(folder / "found");
  save("found/broken.json", "{");
  const Finished run =
      attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "3", "--json"}));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(has(run.err, "found     cannot be read: " + (folder / "found/broken.json").string()))
      << run.err;
  EXPECT_TRUE(has(run.out, "{\"kind\":\"unread\",\"file\":")) << run.out;
  EXPECT_TRUE(has(run.out, "\"unread\":1")) << run.out;
}

TEST_F(KnownCli, AnOutThatIsNoFolderEndsTheRunBeforeItBegins) {
  auto flags = arguments({"--backend", "scalar.unified@cpu", "--cases", "3"});
  flags[6] = save("file", "x");
  const Finished run = attest_cli(flags);
  EXPECT_EQ(run.code, 74) << run.err;
  EXPECT_EQ(run.err, "attest: --out " + flags[6] + ": Not a directory\n");
  EXPECT_EQ(run.out, "");
}

TEST_F(KnownCli, AListMayComeThroughAPipeAndIsNoReportsFile) {
  const std::string file = list("faulty-first_key_ignored", "2999-12-31");
  const std::string run = std::string(ATTEST_BINARY) + " run --backend " + faulty +
                          " --cases 2 --max-kv 48 --out " + (folder / "found").string();
  const Finished piped =
      Subprocess({"/bin/bash", "-c", run + " --known <(cat " + file + ")"}).finish();
  EXPECT_EQ(piped.code, 0) << piped.out << piped.err;
  EXPECT_TRUE(has(piped.out, "known     first key, link: case ")) << piped.out;
  const Finished twice = attest_cli(
      arguments({"--backend", faulty, "--cases", "1", "--known", file, "--record", file}));
  EXPECT_EQ(twice.code, 64) << twice.err;
}

TEST_F(KnownCli, AKnownFailureIsToldAndFailsNothing) {
  const Finished run =
      attest_cli(arguments({"--backend", faulty, "--cases", "6", "--known",
                            list("faulty-first_key_ignored", "2999-12-31"), "--json"}));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "known     first key, link: case ")) << run.err;
  EXPECT_FALSE(has(run.err, "MISMATCH"));
  EXPECT_TRUE(has(run.out, "\"known\":\"first key\"")) << run.out;
  EXPECT_FALSE(fs::exists(folder / "found"));
}

TEST_F(KnownCli, AKnownFailureThatPassesFailsTheRunAndIsNamed) {
  const Finished run = attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "4",
                                             "--known", list("scalar", "2999-12-31")}));
  EXPECT_EQ(run.code, 7) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "known failure \"first key\" no longer fails, in 4 cases")) << run.err;
}

TEST_F(KnownCli, AnExpiredEntryFailsTheRunBeforeItBegins) {
  const Finished run = attest_cli(
      arguments({"--backend", faulty, "--cases", "4", "--known", list("faulty", "2026-01-01")}));
  EXPECT_EQ(run.code, 7) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "known failure \"first key\" expired on 2026-01-01: link")) << run.err;
  EXPECT_FALSE(has(run.out, "backend")) << run.out;
}

TEST_F(KnownCli, AnEntryThatCanMeetNoCaseIsTold) {
  const Finished run = attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "2",
                                             "--known", list("scalar.unifeid@cpu", "2999-12-31")}));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_TRUE(has(run.err,
                  "known failure \"first key\" is about \"scalar.unifeid@cpu\", which is "
                  "no backend; did you mean scalar.unified"))
      << run.err;
}

TEST_F(KnownCli, AListThatDoesNotReadIsBadInput) {
  const Finished run = attest_cli(
      arguments({"--backend", faulty, "--cases", "1", "--known", list("faulty", "tomorrow")}));
  EXPECT_EQ(run.code, 65) << run.err;
  EXPECT_TRUE(has(run.err, "/known/0/expires")) << run.err;
  const Finished none = attest_cli(
      arguments({"--backend", faulty, "--cases", "1", "--known", (folder / "none").string()}));
  EXPECT_EQ(none.code, 65) << none.err;
}

}  // namespace
}  // namespace attest
