#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "cli/test_support.hpp"
#include "memory/sanitizers.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path corpus = fs::path(ATTEST_SOURCE_DIR) / "fixtures" / "corpus";

class HostileCli : public testing::Test, protected ScratchFolder {
 protected:
  /// `attest run` on short cases of scalar.decode, from a shell after `before`.
  Finished shell(const std::string& before, const std::string& more) const {
    return Subprocess({"/bin/bash", "-c",
                       before + "; exec " + ATTEST_BINARY +
                           " run --backend scalar.decode --max-kv 32 --shrink-time 0 --out " +
                           (folder / "found").string() + " " + more})
        .finish();
  }
};

TEST_F(HostileCli, LittleAddressSpaceBlamesNoKernel) {
  if (needs_all_addresses) GTEST_SKIP() << "no limit on addresses under a sanitizer";
  const Finished run = shell("ulimit -v 4000000", "--cases 3 --jobs 1");
  EXPECT_EQ(run.code, 4) << run.out << run.err;
  EXPECT_TRUE(has(run.out, "unavailable  scalar.decode@cpu  case 2")) << run.out;
  EXPECT_TRUE(has(run.out, "raise it with ulimit -v")) << run.out;
  EXPECT_FALSE(has(run.out, "CRASHED")) << run.out;
  // The case it could not judge is one of the three: the run did not stop before its end.
  EXPECT_FALSE(has(run.out, "stopped at")) << run.out;
  EXPECT_FALSE(has(run.out, "150 %")) << run.out;
}

TEST_F(HostileCli, FewDescriptorsBlameNoKernel) {
  const Finished run = shell("ulimit -n 5", "--cases 3 --jobs 1");
  EXPECT_EQ(run.code, 4) << run.out << run.err;
  EXPECT_FALSE(has(run.out, "CRASHED")) << run.out;
}

TEST_F(HostileCli, WorkersThatCannotBeStartedExitSeventyAndBlameNoKernel) {
  const Finished run =
      Subprocess({"/bin/bash", "-c",
                  "ulimit -n 7; exec " + std::string(ATTEST_BINARY) +
                      " run --backend faulty-crash.unified@cpu --cases 1 --shrink-time 0 --out " +
                      (folder / "found").string()})
          .finish();
  EXPECT_EQ(run.code, 70) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "cannot start worker ")) << run.err;
}

TEST_F(HostileCli, FileThatMayGrowNoFurtherExitsSeventyFour) {
  const Finished run = Subprocess({"/bin/bash", "-c",
                                   "ulimit -f 1; exec " + std::string(ATTEST_BINARY) +
                                       " explain > " + (folder / "out.txt").string()})
                           .finish();
  EXPECT_EQ(run.code, 74) << run.err;
  EXPECT_TRUE(has(run.err, "standard output: File too large")) << run.err;
}

TEST_F(HostileCli, SecondRunOfOneRecordIsRefusedAndLeavesItAlone) {
  const fs::path record = folder / "run.jsonl";
  Subprocess first({ATTEST_BINARY, "run", "--backend", "scalar.decode", "--cases", "1000000",
                    "--max-kv", "32", "--record", record.string()});
  ASSERT_TRUE(wait_for_lines(record, 2)) << "stays short";
  const Finished second = shell(":", "--cases 1 --record " + record.string());
  EXPECT_EQ(second.code, 74) << second.out;
  EXPECT_TRUE(has(second.err, record.string() + ": another run writes this record")) << second.err;
  // A closed terminal ends a run as Ctrl-C does.
  first.send(SIGHUP);
  const Finished ended = first.finish();
  EXPECT_EQ(ended.code, 130);
  EXPECT_TRUE(has(ended.out, "interrupted after")) << ended.out;
  EXPECT_TRUE(has(text_of(record), "{\"kind\":\"summary\"")) << ended.err;
}

TEST_F(HostileCli, JunitOntoStandardOutputComesAfterTheTable) {
  const fs::path out = folder / "out.txt";
  const Finished run = shell(":", "--cases 1 --junit /dev/stdout > " + out.string());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  const std::string text = text_of(out);
  EXPECT_LT(text.find("coverage"), text.find("<testsuites")) << text;
  EXPECT_TRUE(has(text, "</testsuites>")) << text;
}

TEST_F(HostileCli, MistypedJunitFolderIsNotMade) {
  const fs::path absent = folder / "absent";
  const Finished run = shell(":", "--cases 1 --junit " + (absent / "j.xml").string());
  EXPECT_EQ(run.code, 74);
  EXPECT_TRUE(has(run.err, (absent / "j.xml").string())) << run.err;
  EXPECT_FALSE(fs::exists(absent));
}

TEST_F(HostileCli, StackThatRunsOutTellsTheCaseInFlight) {
  const Finished run = shell("ulimit -s 64", "--cases 3 --jobs 1");
  // Some kernels fit into that; whatever does not says which case it was.
  if (run.code == 0) return;
  EXPECT_TRUE(has(run.err, "killed by a signal while it judged:")) << run.code << run.err;
}

TEST_F(HostileCli, PipesAreNotReadAsFixtures) {
  const fs::path fifo = folder / "fifo.json";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Finished replay = attest_cli({"replay", fifo.string()});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.err, fifo.string() + ": is not a regular file")) << replay.err;
}

TEST_F(HostileCli, LinksThatLeadNowhereAreNamedAndTheOthersJudged) {
  fs::create_symlink("a_loop.json", folder / "a_loop.json");
  fs::create_symlink("absent", folder / "b_dangling.json");
  save("good.json", text_of(corpus / "accept" / "decode.gqa.json"));
  const Finished replay = attest_cli({"replay", folder.string(), "--backend", "scalar"});
  EXPECT_EQ(replay.code, 65);
  EXPECT_TRUE(has(replay.err, "a_loop.json: cannot be read: Too many levels")) << replay.err;
  EXPECT_TRUE(has(replay.err, "b_dangling.json: a link to a file that is not there")) << replay.err;
  EXPECT_TRUE(has(replay.out, "good")) << replay.out;
  EXPECT_EQ(attest_cli({"replay", (folder / "a_loop.json").string()}).code, 65);
}

std::string captured_line(const std::string& id) {
  std::ifstream file(corpus / "captured" / "sglang_calls.jsonl");
  for (std::string line; std::getline(file, line);) {
    if (Json::parse(line)["id"] == id) return line + "\n";
  }
  ADD_FAILURE() << id;
  return "";
}

/// A folder of what a recorder and a hostile neighbour may leave: five places that cannot be read,
/// among them two wrong calls and a right one.
void fill_with_bad_neighbours(const fs::path& folder) {
  const std::string wrong = captured_line("sglang-0001");
  std::ofstream(folder / "a.jsonl") << wrong.substr(0, wrong.size() / 2) << "\n" << wrong;
  fs::create_symlink("b_loop.json", folder / "b_loop.json");
  fs::create_symlink("absent", folder / "c_dangling.json");
  ASSERT_EQ(::mkfifo((folder / "d_fifo.jsonl").c_str(), 0600), 0);
  fs::create_directory_symlink(".", folder / "e_folder.json");
  std::ofstream(folder / "z.jsonl") << wrong;
}

TEST_F(HostileCli, CheckNamesWhatItCannotReadAndJudgesTheRest) {
  fill_with_bad_neighbours(folder);
  const Finished check = attest_cli({"check", folder.string()});
  EXPECT_EQ(check.code, 65) << check.out << check.err;
  EXPECT_TRUE(has(check.err, "a.jsonl:1: line 1, ")) << check.err;
  EXPECT_TRUE(has(check.err, "b_loop.json: cannot be read: Too many levels")) << check.err;
  EXPECT_TRUE(has(check.err, "c_dangling.json: a link to a file that is not there")) << check.err;
  EXPECT_TRUE(has(check.err, "d_fifo.jsonl: is not a regular file")) << check.err;
  EXPECT_TRUE(has(check.err, "e_folder.json: is a directory")) << check.err;
  EXPECT_TRUE(has(check.out, "2 calls: 2 judged")) << check.out;
  EXPECT_TRUE(has(check.out, ", 5 places could not be read.\n")) << check.out;
  for (const char* const other : {"--against-spec", "--steps"}) {
    const Finished run = attest_cli({"check", folder.string(), other});
    EXPECT_EQ(run.code, 65) << run.out;
    EXPECT_TRUE(has(run.out, "\n5 places could not be read.\n")) << run.out;
  }
  EXPECT_EQ(attest_cli({"check", (folder / "b_loop.json").string()}).code, 65);
  EXPECT_EQ(attest_cli({"check", (folder / "d_fifo.jsonl").string()}).code, 65);
}

TEST_F(HostileCli, CheckTellsOfTheUnreadInJsonAndJunit) {
  fill_with_bad_neighbours(folder);
  const fs::path junit = folder / "report.xml";
  const Finished check =
      attest_cli({"check", folder.string(), "--json", "--junit", junit.string(), "--limit", "2"});
  std::istringstream stream(check.out);
  std::vector<Json> unread;
  Json last;
  for (std::string line; std::getline(stream, line);) {
    last = Json::parse(line);
    if (last["kind"] == "unread") unread.push_back(last);
  }
  ASSERT_EQ(unread.size(), 5U) << check.out;
  EXPECT_EQ(unread[0]["file"], (folder / "a.jsonl").string());
  EXPECT_EQ(unread[0]["line"], 1);
  EXPECT_EQ(last["unread"], 5);
  EXPECT_EQ(last["exit"], 65);
  EXPECT_TRUE(has(check.err, "... and 3 more places that could not be read")) << check.err;
  const std::string xml = text_of(junit);
  EXPECT_TRUE(has(xml, "<testsuite name=\"input\" tests=\"5\" failures=\"0\" errors=\"5\"")) << xml;
  EXPECT_TRUE(has(xml, "d_fifo.jsonl\">\n      <error type=\"unread\" message=\"is not")) << xml;
}

TEST_F(HostileCli, CheckReadsAPipeThatSomebodyHoldsOpen) {
  const std::string path = save("calls.jsonl", captured_line("sglang-0001"));
  const Finished check =
      Subprocess({"/bin/bash", "-c", std::string(ATTEST_BINARY) + " check <(cat " + path + ")"})
          .finish();
  EXPECT_TRUE(has(check.out, "1 call: 1 judged")) << check.out << check.err;
}

TEST_F(HostileCli, CheckThatRunsOutOfMemoryTellsWhatItJudgedAndExitsSeventy) {
  if (needs_all_addresses) GTEST_SKIP() << "no limit on addresses under a sanitizer";
  Json large = Json::parse(captured_line("sglang-0001"));
  large["notes"] = std::vector<std::string>(200, std::string(60'000, 'x'));
  const std::string path = save("calls.jsonl", captured_line("sglang-0001") + large.dump() + "\n");
  const Finished check = Subprocess({"/bin/sh", "-c",
                                     "ulimit -v 30000; exec " + std::string(ATTEST_BINARY) +
                                         " check " + path + " --junit " + path + ".xml"})
                             .finish();
  EXPECT_EQ(check.code, 70) << check.out << check.err;
  EXPECT_TRUE(has(check.out, "1 call: 1 judged")) << check.out;
  EXPECT_TRUE(has(check.err, "attest: ended after 1 call\nattest: out of memory")) << check.err;
  EXPECT_TRUE(has(text_of(path + ".xml"), "sglang-0001")) << check.err;
}

TEST_F(HostileCli, TextOfAFixtureCannotCommandTheTerminal) {
  Json json = Json::parse(text_of(corpus / "accept" / "decode.gqa.json"));
  json["story"] = "\x1b[2Jgone\nscalar.decode@cpu: all as expected.";
  const std::string path = save("evil\x1b[31m\nname.json", json.dump());
  const Finished replay = attest_cli({"replay", path, "--backend", "scalar", "--verbose"});
  EXPECT_FALSE(has(replay.out, "\x1b")) << replay.out;
  EXPECT_TRUE(has(replay.out, "\\x1b[2Jgone\\nscalar.decode@cpu: all as expected.")) << replay.out;
  const Finished broken = attest_cli({"replay", save("bad\x1b[31m\nforged.json", "{")});
  EXPECT_EQ(broken.code, 65);
  EXPECT_TRUE(has(broken.err, "bad\\x1b[31m\\nforged.json")) << broken.err;
}

TEST_F(HostileCli, TextOfACapturedCallCannotCommandTheTerminal) {
  std::ifstream file(corpus / "captured" / "sglang_calls.jsonl");
  std::string shown;
  for (std::string line; std::getline(file, line);) {
    Json call = Json::parse(line);
    call["id"] = "\x1b]0;title\x07\nwrong  forged";
    shown += call.dump() + "\n";
  }
  const Finished check = attest_cli({"check", save("calls.jsonl", shown), "--limit", "0"});
  EXPECT_FALSE(has(check.out, "\x1b")) << check.out;
  EXPECT_TRUE(has(check.out, "\\x1b]0;title\\x07\\nwrong  forged")) << check.out;
}

TEST_F(HostileCli, QueryOfAnotherElementSizeIsUnsupportedAndNotACrash) {
  Json json = Json::parse(text_of(corpus / "accept" / "unified.decode.json"));
  json["problem"] = {{"mode", "decode"},
                     {"model", {{"num_q_heads", 4}, {"num_kv_heads", 2}, {"head_dim", 32}}},
                     {"pool", {{"page_size", 16}, {"num_pages", 4}}},
                     {"requests", {{{"committed", 9}, {"new_tokens", 1}}}}};
  json["call"] = {{"signature", "unified"},
                  {"q", {{"dtype", "f32"}, {"shape", {1, 4, 32}}}},
                  {"k", {{"dtype", "bf16"}, {"shape", {4, 16, 2, 32}}}},
                  {"v", {{"dtype", "bf16"}, {"shape", {4, 16, 2, 32}}}},
                  {"out", {{"dtype", "f32"}, {"shape", {1, 4, 32}}}},
                  {"cu_seqlens_q", {{"dtype", "int32"}, {"values", {0, 1}}}},
                  {"seqused_k", {{"dtype", "int64"}, {"values", {10}}}},
                  {"block_table", {{"dtype", "int32"}, {"shape", {1, 1}}, {"values", {{2}}}}},
                  {"max_seqlen_q", 1},
                  {"max_seqlen_k", 10},
                  {"softmax_scale", 0.125}};
  const std::string path = save("f32q.json", json.dump());
  for (const char* rules : {"report", "off"}) {
    const Finished replay =
        attest_cli({"replay", path, "--backend", "scalar.unified", "--rules", rules});
    EXPECT_TRUE(has(replay.out, "got unsupported (q of f32 has elements of another size"))
        << replay.out << replay.err;
  }
}

}  // namespace
}  // namespace attest
