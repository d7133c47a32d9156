#include "property_tests/report/record.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "property_tests/report/sample_result.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

TEST(Record, CaseLineHoldsWhatAFailureNeeds) {
  const Json json = Json::parse(case_json(sample_mismatch()));
  EXPECT_EQ(json["kind"], "case");
  EXPECT_EQ(json["backend"], "scalar.unified@cpu");
  EXPECT_EQ(json["engine"], "cpu");
  EXPECT_EQ(json["case"], 42);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["verdict"], "mismatch");
  EXPECT_EQ(json["error_over_bound"], 412.5);
  EXPECT_EQ(json["oracles"][1]["element"], 17);
  EXPECT_EQ(json["findings"][0]["rule"], "block_table.has_draft_slack");
  EXPECT_EQ(json["counters"]["kv_bytes"], 34816);
  EXPECT_EQ(json["repro"], "attest run --backend scalar.unified@cpu --seed 7 --case 42");
  EXPECT_FALSE(json.contains("expected"));
}

TEST(Record, SaysNanAndInfinityInWords) {
  CaseResult result = sample_pass();
  result.judgement.worst_over_bound = std::numeric_limits<double>::quiet_NaN();
  result.judgement.worst_z = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(case_json(result));
  EXPECT_EQ(json["error_over_bound"], "nan");
  EXPECT_EQ(json["z"], "inf");
}

TEST(Record, SurvivesTextThatIsNotUtf8) {
  CaseResult result = sample_pass();
  result.judgement.reason = "worker said \xff\xfe";
  EXPECT_TRUE(Json::accept(case_json(result)));
}

TEST(Record, HeaderNamesVersionMachineAndSelection) {
  RecordHeader header{.command = "run", .seed = 7, .first = 3, .count = 10, .shard = "2/4"};
  header.backends = {"scalar.unified@cpu"};
  header.machine.cpu = "a cpu";
  const Json json = Json::parse(header_json(header));
  EXPECT_EQ(json["kind"], "header");
  EXPECT_EQ(json["schema"], record_schema);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["shard"], "2/4");
  EXPECT_EQ(json["machine"]["cpu"], "a cpu");
  EXPECT_FALSE(json["version"].get<std::string>().empty());
  EXPECT_FALSE(json["compiler"].get<std::string>().empty());
}

TEST(Record, SummaryCountsEveryVerdict) {
  BackendTally tally;
  tally.backend = "scalar.unified@cpu";
  tally.add(sample_mismatch());
  tally.add(sample_pass());
  const std::array tallies = {tally};
  const Json json = Json::parse(summary_json(tallies, 1, true));
  EXPECT_EQ(json["exit"], 1);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["backends"][0]["mismatch"], 1);
  EXPECT_EQ(json["backends"][0]["pass"], 1);
  EXPECT_EQ(json["backends"][0]["hung"], 0);
  EXPECT_EQ(json["backends"][0]["failure_kinds"]["hard"], 1);
}

TEST(Record, SaysWhatEarlierRunsFoundAndWhatIsKnown) {
  CaseResult result = sample_mismatch();
  EXPECT_FALSE(Json::parse(case_json(result)).contains("found"));
  result.found = true;
  result.known = "softcap";
  result.known_issue = "https://example.org/7";
  const Json json = Json::parse(case_json(result));
  EXPECT_EQ(json["found"], true);
  EXPECT_EQ(json["known"], "softcap");
  EXPECT_EQ(json["known_issue"], "https://example.org/7");
  result.known.clear();
  BackendTally tally;
  tally.add(result);
  result.judgement.verdict = Verdict::untrusted;
  tally.add(result);
  const std::array tallies = {tally};
  const Json summary = Json::parse(summary_json(tallies, 1, false, 2));
  EXPECT_EQ(summary["unread"], 2);
  EXPECT_EQ(summary["backends"][0]["mismatch"], 1);
  EXPECT_EQ(summary["backends"][0]["untrusted"], 0);
  EXPECT_EQ(summary["backends"][0]["cases"], 1);
  EXPECT_EQ(summary["backends"][0]["found"], 1);
  EXPECT_EQ(summary["backends"][0]["found_failed"], 1);
  EXPECT_EQ(summary["backends"][0]["found_not_judged"], 1);
}

TEST(Record, FileHoldsEveryLineAsSoonAsItIsWritten) {
  const std::string path = testing::TempDir() + "attest_record_test.jsonl";
  RecordFile file(path);
  file.line("{\"a\": 1}");
  std::ifstream reader(path);
  std::stringstream text;
  text << reader.rdbuf();
  EXPECT_EQ(text.str(), "{\"a\": 1}\n");
}

TEST(Record, NamesAFileThatCannotBeMade) {
  try {
    RecordFile file("/nonexistent/runs.jsonl");
    FAIL() << "opened";
  } catch (const std::system_error& error) {
    EXPECT_STREQ(error.what(), "opening /nonexistent/runs.jsonl: No such file or directory");
  }
}

/// A file of this process, gone at the end.
struct OwnFile {
  OwnFile() { std::filesystem::remove(path); }
  ~OwnFile() { std::filesystem::remove(path); }
  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string path = testing::TempDir() + "attest_record_test." + std::to_string(::getpid());
};

TEST(RecordFile, EndsInAWholeLineWhereThereIsNoRoomForMore) {
  const OwnFile own;
  auto* const before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{.rlim_cur = 100, .rlim_max = usual.rlim_max};
  {
    RecordFile file(own.path);
    file.line(std::string(59, 'a'));
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THROW(file.line(std::string(59, 'b')), std::system_error);
    ::setrlimit(RLIMIT_FSIZE, &usual);
    EXPECT_EQ(own.text(), std::string(59, 'a') + "\n");
    file.line("c");
  }
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(own.text(), std::string(59, 'a') + "\nc\n");
}

TEST(RecordFile, IsRefusedWhileAnotherOneWritesIt) {
  const OwnFile own;
  RecordFile first(own.path);
  first.line("{}");
  try {
    const RecordFile second(own.path);
    FAIL() << "two write one record";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find(own.path + ": another run writes this record"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(own.text(), "{}\n");
}

}  // namespace
}  // namespace attest
