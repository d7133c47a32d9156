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
  EXPECT_TRUE(has(run.out, "still failing, beside the table's cases: ")) << run.out;
  EXPECT_FALSE(has(text_of(junit), "failures=\"0\"")) << text_of(junit);
}

TEST_F(KnownCli, AKnownFailureIsToldAndFailsNothing) {
  const Finished run =
      attest_cli(arguments({"--backend", faulty, "--cases", "6", "--known",
                            list("faulty-first_key_ignored", "2999-12-31"), "--json"}));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "known     first key: case ")) << run.err;
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
