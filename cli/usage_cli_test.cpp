#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/test_support.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

TEST(Cli, HelpListsCommandsAndExitCodes) {
  const Finished help = attest_cli({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"doctor", "run", "replay", "check", "explain", "bench", "Exit codes",
                           "  7   a verdict or label differs", "  130 interrupted"}) {
    EXPECT_TRUE(has(help.out, word)) << word << "\n" << help.out;
  }
  EXPECT_FALSE(has(help.out, "worker")) << "for attest itself, not for people";
}

TEST(Cli, VersionNamesCompilerAndFlags) {
  const Finished version = attest_cli({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(has(version.out, "attest "));
  EXPECT_TRUE(has(version.out, "compiler   "));
  EXPECT_TRUE(has(version.out, "flags      "));
}

TEST(Cli, UnknownCommandIsAUsageErrorWithASuggestion) {
  const Finished run = attest_cli({"rnu"});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "attest: unknown command 'rnu'; did you mean run?")) << run.err;
}

TEST(Cli, UnknownFlagIsAUsageErrorWithASuggestion) {
  const Finished run = attest_cli({"run", "--sede", "3"});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "unknown flag '--sede' of attest run; did you mean --seed?")) << run.err;
}

TEST(Cli, NoCommandIsAUsageError) {
  const Finished run = attest_cli({});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "no command given")) << run.err;
}

TEST(Cli, BadValueIsAUsageErrorThatNamesTheFlag) {
  const Finished run = attest_cli({"run", "--cases", "many"});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "--cases")) << run.err;
  EXPECT_EQ(attest_cli({"run", "--rules", "maybe"}).code, 64);
  EXPECT_EQ(attest_cli({"run", "--cases", "0"}).code, 64);
  EXPECT_EQ(attest_cli({"run", "--shard", "5/4"}).code, 64);
}

TEST(Cli, UnknownBackendIsAUsageErrorWithNearNames) {
  const Finished run = attest_cli({"run", "--backend", "scaler.unified@cpu", "--cases", "1"});
  EXPECT_EQ(run.code, 64);
  EXPECT_TRUE(has(run.err, "scalar.unified@cpu")) << run.err;
}

TEST(Cli, DoctorSaysWhatCanRunHere) {
  const Finished doctor = attest_cli({"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.err;
  EXPECT_TRUE(has(doctor.out, "scalar.unified@cpu")) << doctor.out;
  EXPECT_TRUE(has(doctor.out, "machine"));
  EXPECT_FALSE(has(doctor.out, "faulty-"));
  EXPECT_TRUE(has(attest_cli({"doctor", "--faults"}).out, "faulty-"));
}

TEST(Cli, DoctorJsonNamesEveryBackendWithAReasonWhereThereIsNone) {
  const Finished doctor = attest_cli({"doctor", "--json"});
  const Json json = Json::parse(doctor.out);
  ASSERT_FALSE(json["backends"].empty());
  for (const Json& backend : json["backends"]) {
    EXPECT_TRUE(backend["available"] || !backend["reason"].get<std::string>().empty()) << backend;
  }
}

/// Where an engine was left out, what to do about it; of `run` too.
TEST(Cli, SaysHowToBuildWhatIsLeftOut) {
  const Json json = Json::parse(attest_cli({"doctor", "--json"}).out);
  for (const Json& backend : json["backends"]) {
    const std::string reason = backend["reason"];
    if (!has(reason, "built without ATTEST_HIP=")) continue;
    EXPECT_TRUE(has(reason, "(cmake --preset ")) << reason;
    const Finished run =
        attest_cli({"run", "--backend", backend["name"].get<std::string>(), "--cases", "1"});
    EXPECT_TRUE(has(run.out + run.err, reason)) << run.out << run.err;
  }
}

TEST(Cli, DoctorFailsOnAnUnmetRequirement) {
  const Finished doctor = attest_cli({"doctor"}, {{"ATTEST_REQUIRE", "nokernel@silicon"}});
  EXPECT_EQ(doctor.code, 4);
  EXPECT_TRUE(has(doctor.out, "nokernel@silicon")) << doctor.out;
}

TEST(Cli, ExplainListsEveryRuleAndShowsOneBroken) {
  const Finished list = attest_cli({"explain", "--json"});
  ASSERT_EQ(list.code, 0) << list.err;
  const Json rules = Json::parse(list.out);
  ASSERT_FALSE(rules.empty());
  for (const Json& rule : rules) {
    EXPECT_FALSE(rule["says"].get<std::string>().empty()) << rule["id"];
    EXPECT_FALSE(rule["source"].get<std::string>().empty()) << rule["id"];
  }
  const std::string id = rules[0]["id"];
  const Finished one = attest_cli({"explain", id});
  EXPECT_EQ(one.code, 0);
  EXPECT_TRUE(has(one.out, id));
  EXPECT_TRUE(has(one.out, "  source     "));
}

TEST(Cli, ExplainShowsACallThatBreaksEachRule) {
  const Json rules = Json::parse(attest_cli({"explain", "--json"}).out);
  for (const Json& rule : rules) {
    EXPECT_FALSE(rule["examples"].empty()) << rule["id"];
  }
}

TEST(Cli, ExplainSuggestsNearRules) {
  const Finished one = attest_cli({"explain", "seqused"});
  EXPECT_EQ(one.code, 64);
  EXPECT_TRUE(has(one.err, "no rule, fault or other name 'seqused'; did you mean")) << one.err;
}

TEST(Cli, ExplainKnowsTheNamesThatReportsPrint) {
  for (const char* const name : {"step.graph_serves_the_replay", "hard", "gain", "prefix_hole",
                                 "last_key_ignored", "uneven", "policy", "page 16"}) {
    const Finished one = attest_cli({"explain", name});
    EXPECT_EQ(one.code, 0) << one.err;
    EXPECT_TRUE(has(one.out, "  says       ")) << one.out;
    EXPECT_FALSE(Json::parse(attest_cli({"explain", name, "--json"}).out).empty()) << name;
  }
  EXPECT_TRUE(has(attest_cli({"explain", "names"}).out, "hypothesis")) << "lists them";
}

TEST(Cli, ClosedStandardOutputExitsSeventyFour) {
  const Finished run =
      Subprocess({"/bin/sh", "-c", std::string(ATTEST_BINARY) + " explain >&-"}).finish();
  EXPECT_EQ(run.code, 74);
  EXPECT_TRUE(has(run.err, "standard output: Bad file descriptor")) << run.err;
}

}  // namespace
}  // namespace attest
