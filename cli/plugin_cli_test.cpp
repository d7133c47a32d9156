#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/test_support.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

const fs::path corpus = fs::path(ATTEST_SOURCE_DIR) / "fixtures" / "corpus";

/// Input files run no code (SECURITY.md): a library that one names is loaded only where the command
/// line names it too.
class PluginCli : public testing::Test, protected ScratchFolder {
 protected:
  /// A copy of the test's plugin, so that nobody has loaded it before.
  PluginCli() { fs::copy_file(ATTEST_TEST_PLUGIN_FILE, library); }

  /// The plugin as it is, or as what it is told to do.
  Finished cli(const std::vector<std::string>& arguments, const std::string& does = "") const {
    return attest_cli(arguments,
                      {{"ATTEST_TEST_LOADED", mark.string()}, {"ATTEST_TEST_PLUGIN", does}});
  }
  /// Whether code of the library ran.
  bool was_loaded() const { return fs::exists(mark); }

  std::string fixture_naming(const std::string& backend) const {
    Json json = Json::parse(text_of(corpus / "accept" / "unified.decode.json"));
    json["backend"] = backend;
    return save("named.json", json.dump());
  }

  const fs::path library = folder / "libevil.so";
  const fs::path mark = folder / "loaded";
};

TEST_F(PluginCli, LibraryThatAFixtureNamesIsNotLoaded) {
  const std::string other = save("other.json", text_of(corpus / "accept" / "decode.gqa.json"));
  for (const std::string& backend : {library.string(), "scalar.unified@cpu," + library.string()}) {
    const std::string file = fixture_naming(backend);
    const Finished replay = cli({"replay", file, other});
    EXPECT_EQ(replay.code, 65) << replay.out << replay.err;
    EXPECT_FALSE(was_loaded()) << backend;
    EXPECT_TRUE(has(replay.err, "attest: " + file + ": /backend: \"" + library.string() +
                                    "\" is a library, which a fixture alone does not load"))
        << replay.err;
    EXPECT_TRUE(has(replay.err, " replay " + file + " --plugin " + library.string() + "\n"))
        << replay.err;
    EXPECT_TRUE(has(replay.out, "other")) << "the other file was not judged: " << replay.out;
  }
}

TEST_F(PluginCli, LibraryThatTheCommandLineNamesTooIsLoaded) {
  const std::string file = fixture_naming(library.string());
  const Finished other = cli({"replay", file, "--backend", "scalar.unified"});
  EXPECT_EQ(other.code, 0) << other.out << other.err;
  EXPECT_FALSE(was_loaded()) << "another backend was asked for";
  EXPECT_EQ(cli({"replay", file, "--plugin", "./libother.so"}).code, 65);
  EXPECT_FALSE(was_loaded()) << "another library was named";
  // However its path is spelled.
  const std::string around = (folder / "." / library.filename()).string();
  const Finished replay = cli({"replay", "--plugin", around, file});
  EXPECT_EQ(replay.code, 0) << replay.out << replay.err;
  EXPECT_TRUE(was_loaded());
  // Given several times, it takes no file that follows.
  const Finished both =
      cli({"replay", "--plugin", around, "--plugin", "./libother.so", file, file});
  EXPECT_EQ(both.code, 0) << both.out << both.err;
}

TEST_F(PluginCli, SideWithAnOptionThatTheDescriptionLeavesOutIsNotJudged) {
  const fs::path sinks = fs::path(ATTEST_SOURCE_DIR) /
                         "fixtures/corpus/accept/unified.draft_extend_window_and_sinks.json";
  const Finished replay = cli({"replay", sinks.string(), "--backend", library.string()});
  EXPECT_FALSE(has(replay.out, "MISMATCH")) << replay.out;
  EXPECT_TRUE(has(replay.out, "does not say that it takes a window")) << replay.out << replay.err;
}

TEST_F(PluginCli, FailureThatARunSavedReplaysByTheLineThatIsPrinted) {
  const fs::path found = folder / "found";
  const Finished run = cli({"run", "--backend", library.string(), "--cases", "1", "--max-kv", "48",
                            "--shrink-time", "0", "--out", found.string()},
                           "refuses");
  ASSERT_EQ(run.code, 1) << run.out << run.err;
  const std::string file = fs::directory_iterator(found)->path().string();
  const Finished refused = cli({"replay", file}, "refuses");
  EXPECT_EQ(refused.code, 65) << refused.out;
  const std::size_t at = refused.err.find(" --plugin ");
  ASSERT_NE(at, std::string::npos) << refused.err;
  std::string named = refused.err.substr(at + 10);
  named.erase(named.find('\n'));
  const Finished replay = cli({"replay", file, "--plugin", named}, "refuses");
  EXPECT_EQ(replay.code, 0) << replay.out << replay.err;
  // What a run has found before is judged on the library that the run names.
  const Finished again = cli({"run", "--backend", library.string(), "--cases", "1", "--max-kv",
                              "48", "--shrink-time", "0", "--out", found.string()},
                             "refuses");
  EXPECT_TRUE(has(again.out, "found     still fails")) << again.out;
}

/// Every other file that a command reads.
TEST_F(PluginCli, NoOtherInputReachesALibrary) {
  const std::string file = fixture_naming(library.string());
  const std::string path = library.string();
  std::ifstream calls(corpus / "captured" / "sglang_calls.jsonl");
  std::string line;
  std::getline(calls, line);
  Json call = Json::parse(line);
  for (const char* const key : {"id", "kernel", "path", "file_version", "backend"})
    call[key] = path;
  const std::string captured = save("calls.jsonl", call.dump() + "\n" + line + "\n");
  const std::string known = save(
      "known.json",
      Json{{"schema", 1},
           {"known",
            {{{"name", "it"}, {"issue", "link"}, {"expires", "2999-12-31"}, {"backend", path}}}}}
          .dump());
  const std::string record = save(
      "record.jsonl", R"({"kind":"trial","mutant":")" + path + R"(","backend":")" + path + "\"}\n");
  fs::create_directory(folder / "found");
  fs::copy_file(file, folder / "found" / "named.json");
  const std::vector<std::vector<std::string>> commands = {
      {"check", file},
      {"check", captured},
      {"check", captured, "--steps"},
      {"check", captured, "--against-spec"},
      {"fixture", captured, "--line", "1"},
      {"fixture", captured, "--line", "2", "--trials", "0"},
      {"mutants", "--from", record},
      {"run", "--backend", "scalar.unified", "--cases", "1", "--max-kv", "32", "--known", known,
       "--out", (folder / "found").string()},
      {"explain", path}};
  for (const std::vector<std::string>& command : commands) {
    const Finished run = cli(command);
    EXPECT_FALSE(was_loaded()) << command[0] << "\n" << run.out << run.err;
  }
}

}  // namespace
}  // namespace attest
