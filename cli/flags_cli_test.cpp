#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/test_support.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

/// The lines of a record that `attest run` prints, failures not saved.
std::vector<Json> record_of(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",           "--json", "--max-kv",    "48",
                                        "--shrink-time", "0",      "--max-saved", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::istringstream stream(attest_cli(arguments).out);
  std::vector<Json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(Flags, WithANumberOutsideItsBoundsAreAUsageErrorThatNamesBoth) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--cases", "-1"},
      {"--cases", "9223372036854775807"},
      {"--cases", "+5"},
      {"--cases", "0x10"},
      {"--cases", "1e3"},
      {"--first", "9223372036854775808"},
      {"--first", "-1"},
      {"--case", "18446744073709551616"},
      {"--seed", "-1"},
      {"--seed", "18446744073709551616"},
      {"--max-kv", "0"},
      {"--max-kv", "1000000000"},
      {"--max-kv", "9223372036854775807"},
      {"--max-requests", "1000000000"},
      {"--jobs", "-1"},
      {"--jobs", "1000000"},
      {"--kv-splits", "-7"},
      {"--kv-splits", "2147483648"},
      {"--max-failures", "-2"},
      {"--max-saved", "many"},
      {"--time-limit", "1e300"},
      {"--time-limit", "nan"},
      {"--time-limit", "0"},
      {"--budget", "nan"},
      {"--budget", "-1"},
      {"--shrink-time", "nan"},
      {"--shrink-time", "inf"},
  };
  for (const auto& [flag, value] : wrong) {
    const Finished run = attest_cli({"run", flag, value});
    EXPECT_EQ(run.code, 64) << flag << ' ' << value;
    EXPECT_EQ(run.out, "") << flag << ' ' << value;
    EXPECT_TRUE(has(run.err, flag + ": '" + value + "' is not a ")) << run.err;
    EXPECT_LT(run.err.size(), 200U) << run.err;
  }
}

TEST(Flags, WithANumberBelowZeroAreNotTakenForUnknownOnes) {
  const Finished run = attest_cli({"run", "--jobs", "-1"});
  EXPECT_FALSE(has(run.err, "unknown flag")) << run.err;
}

TEST(Flags, TakeDecimalNumbersWithLeadingZeros) {
  const std::vector<Json> lines = record_of({"--backend", "scalar.decode", "--cases", "010"});
  EXPECT_EQ(lines.front()["count"], 10);
}

TEST(Flags, ThatSelectNoBackendAreUsageErrors) {
  for (const char* selector : {"", " ", ",", "scalar,,", ",scalar"}) {
    for (const char* command : {"run", "replay"}) {
      std::vector<std::string> arguments = {command, "--backend", selector};
      if (arguments[0] == "replay") arguments.emplace_back("fixtures/corpus/regressions");
      const Finished run = attest_cli(arguments);
      EXPECT_EQ(run.code, 64) << command << " '" << selector << "'";
      EXPECT_TRUE(has(run.err, "empty")) << run.err;
    }
  }
}

TEST(Flags, ThatForceAFormTakeOnlyThoseThereAre) {
  for (const char* backend : {"scalar.unified@cpu", "hip.unified@host"}) {
    const Finished run = attest_cli({"run", "--backend", backend, "--form", "9d"});
    EXPECT_EQ(run.code, 64) << run.out;
    EXPECT_TRUE(has(run.err, "--form")) << run.err;
  }
  EXPECT_EQ(attest_cli({"run", "--form", "2d", "--kv-splits", "2"}).code, 64);
  EXPECT_EQ(attest_cli({"run", "--form", "3d", "--kv-splits", "1"}).code, 64);
}

TEST(Flags, ThatForceASplitGetExactlyThatOneOrAnAnswerWhyNot) {
  const auto split = record_of({"--backend", "scalar.unified@cpu,hip.unified@host", "--cases", "1",
                                "--form", "3d", "--kv-splits", "2"});
  EXPECT_EQ(split[1]["form"], "split 2");
  EXPECT_EQ(split[2]["form"], "split 2");
  const auto no_forms = record_of({"--backend", "scalar.extend", "--cases", "1", "--form", "3d"});
  EXPECT_EQ(no_forms[1]["verdict"], "unsupported");
  EXPECT_TRUE(has(no_forms[1]["reason"], "no forms")) << no_forms[1];
  const auto too_many =
      record_of({"--backend", "hip.unified@host", "--cases", "1", "--kv-splits", "1000"});
  EXPECT_EQ(too_many[1]["verdict"], "unsupported");
  EXPECT_TRUE(has(too_many[1]["reason"], "128 parts at most, not into 1000")) << too_many[1];
}

TEST(Flags, ThatAProfileWouldPassOverAreUsageErrors) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--profile", "large-kv", "--fault", "seqused_k_short_by_one"},
      {"--profile", "large-kv", "--seed", "3"},
      {"--profile", "large-kv", "--max-kv", "64"},
      {"--profile", "long-context", "--recipe", "needle"},
      {"--profile", "long-context", "--max-requests", "2"},
      {"--profile", "long-context", "--memory", "2GiB"},
      {"--memory", "2GiB"},
      {"--graph", ""},
  };
  for (const std::vector<std::string>& flags : wrong) {
    std::vector<std::string> arguments = {"run", "--backend", "scalar.unified", "--cases", "1"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Finished run = attest_cli(arguments);
    EXPECT_EQ(run.code, 64) << flags.back() << run.out << run.err;
    EXPECT_TRUE(has(run.err, flags[flags.size() - 2])) << run.err;
  }
}

TEST(Flags, OfMemoryThatHoldsNoCellExitThreeAndSayWhatItTakes) {
  const Finished run = attest_cli(
      {"run", "--profile", "large-kv", "--memory", "1GiB", "--backend", "scalar.decode"});
  EXPECT_EQ(run.code, 3) << run.out << run.err;
  EXPECT_TRUE(has(run.out, "no case of its part fits into 1073741824 bytes")) << run.out;
  EXPECT_TRUE(has(run.out, "dense cells left out, the largest takes ")) << run.out;
}

TEST(Flags, NameAProfileInTheFirstLineAndCasesWhereSomeAreChosen) {
  const auto first_line = [](std::vector<std::string> more) {
    std::vector<std::string> run{"run", "--profile", "large-kv", "--backend", "scalar.mla_decode"};
    run.insert(run.end(), more.begin(), more.end());
    const std::string out = attest_cli(run).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_EQ(first_line({}), "attest run  profile large-kv  shard 1/1  rules report");
  EXPECT_EQ(first_line({"--cases", "2"}),
            "attest run  profile large-kv  cases [0, 2)  shard 1/1  rules report");
}

TEST(Flags, SayThatAMistakeBetweenTwoStepsIsAFixtures) {
  const Finished run = attest_cli({"run", "--fault", "lengths_of_the_captured_step"});
  EXPECT_EQ(run.code, 64) << run.out;
  EXPECT_TRUE(has(run.err, "lengths_of_the_captured_step is a mistake between two steps"))
      << run.err;
}

TEST(Flags, AndAWordOfTheEnvironmentThatSaysNothingBlameNoKernel) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "--cases", "1"},
        {"replay", "fixtures/corpus/accept/decode.gqa.json"}}) {
    const Finished run = attest_cli(arguments, {{"ATTEST_KV_MEMORY", "LAZY"}});
    EXPECT_EQ(run.code, 64) << run.out << run.err;
    EXPECT_TRUE(has(run.err, "ATTEST_KV_MEMORY=LAZY is none of lazy, eager, dense")) << run.err;
    const Finished amx = attest_cli(arguments, {{"ATTEST_AMX", "fast"}});
    EXPECT_EQ(amx.code, 64) << amx.out << amx.err;
    EXPECT_TRUE(has(amx.err, "ATTEST_AMX=fast: must be native, patch, trap or off")) << amx.err;
  }
}

TEST(Flags, OfATimeLimitAreInTheLineThatJudgesAHangAgain) {
  const auto lines =
      record_of({"--backend", "faulty-hang.unified@cpu", "--cases", "1", "--time-limit", "0.25"});
  EXPECT_EQ(lines[1]["verdict"], "hung");
  EXPECT_TRUE(has(lines[1]["repro"], " --time-limit 0.25")) << lines[1]["repro"];
}

TEST(Flags, OfAnEndlessRunLeaveItToTheBudget) {
  const auto lines = record_of({"--backend", "scalar.decode", "--cases", "2000000000", "--first",
                                "4000000000000000000", "--budget", "0.3"});
  EXPECT_TRUE(has(lines.back()["backends"][0]["note"], "out of time after ")) << lines.back();
}

TEST(Flags, ThatNameAmxWhereItIsOffExitFour) {
  const std::vector<std::string> run = {"run", "--backend", "amx", "--cases", "1"};
  const Finished off = attest_cli(run, {{"ATTEST_AMX", "off"}});
  EXPECT_EQ(off.code, 4) << off.out << off.err;
  EXPECT_TRUE(has(off.out, "amx.extend@native: unavailable: ")) << off.out;
  const Finished replay = attest_cli(
      {"replay", "fixtures/corpus/accept/decode.gqa.json", "--backend", "amx", "--rules=enforce"},
      {{"ATTEST_AMX", "off"}});
  EXPECT_EQ(replay.code, 4) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "  unavailable        amx.decode@native: ")) << replay.out;
  EXPECT_FALSE(has(replay.out, "UNAVAILABLE  amx")) << replay.out;
}

/// A kernel in attest's own process could not be ended: the flag puts it into another.
TEST(Flags, OfATimeLimitHoldForKernelsThatUsuallyRunInThisProcess) {
  const std::string limit = "0.001";
  const Finished run = attest_cli({"run", "--json", "--backend", "scalar.unified@cpu", "--first",
                                   "3", "--cases", "1", "--max-kv", "4000000", "--max-requests",
                                   "1", "--max-saved", "0", "--time-limit", limit});
  EXPECT_EQ(run.code, 6) << run.err;
  EXPECT_TRUE(has(run.out, "\"verdict\":\"hung\"")) << run.out;
  EXPECT_TRUE(has(run.out, " --time-limit " + limit + "\"")) << run.out;
  const Finished replay =
      attest_cli({"replay", "fixtures/corpus/accept/decode.gqa.json", "--time-limit", limit,
                  "--backend", "scalar", "--rules=enforce"});
  EXPECT_EQ(replay.code, 7) << replay.out << replay.err;
  EXPECT_TRUE(has(replay.out, "hung")) << replay.out;
}

TEST(Flags, OfARequirementFailClosed) {
  for (const char* required : {",,", "scalar@cpu,", " , scalar@cpu"}) {
    const Finished run = attest_cli({"run", "--backend", "scalar.decode", "--cases", "1"},
                                    {{"ATTEST_REQUIRE", required}});
    EXPECT_EQ(run.code, 4) << required;
    EXPECT_TRUE(has(run.err, "is not of the form <impl>@<engine>")) << run.err;
  }
  EXPECT_EQ(attest_cli({"run", "--backend", "scalar.decode", "--cases", "1", "--max-kv", "32"},
                       {{"ATTEST_REQUIRE", " scalar@cpu "}})
                .code,
            0);
}

TEST(Doctor, SaysWhichBackendsARunLeavesOutAndWhy) {
  const Finished doctor = attest_cli({"doctor"}, {{"ATTEST_AMX", ""}});
  const Json json = Json::parse(attest_cli({"doctor", "--json"}, {{"ATTEST_AMX", ""}}).out);
  for (const Json& backend : json["backends"]) {
    const std::string why = backend["only_when_named"];
    if (why.empty() || !backend["available"] || backend["fault"]) continue;
    EXPECT_TRUE(has(doctor.out, "attest run judges " + backend["name"].get<std::string>() +
                                    " only when --backend names it so: " + why))
        << doctor.out;
  }
}

}  // namespace
}  // namespace attest
