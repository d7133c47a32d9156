#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cli/test_support.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// The line that judges a case again: that it works, and that it is never lost.
class ReproCli : public testing::Test, protected ScratchFolder {
 protected:
  static constexpr const char* faulty = "faulty-first_key_ignored.unified@cpu";
};

TEST_F(ReproCli, KilledRunIsNamedByTheNextOne) {
  const fs::path record = folder / "run.jsonl";
  const std::map<std::string, std::string> temporary = {{"TMPDIR", folder.string()}};
  std::vector<std::string> argv = {ATTEST_BINARY};
  for (const std::string& argument :
       arguments({"--backend", "scalar.unified@cpu", "--cases", "1000000", "--jobs", "1",
                  "--record", record.string()})) {
    argv.push_back(argument);
  }
  Subprocess run(argv, temporary);
  ASSERT_TRUE(wait_for_lines(record, 3)) << "stays short";
  run.send(SIGKILL);
  EXPECT_EQ(run.finish().code, 137);
  const auto next = [&] {
    return attest_cli(arguments({"--backend", "scalar.unified@cpu", "--cases", "1"}), temporary);
  };
  const Finished named = next();
  EXPECT_TRUE(has(named.err, "an earlier run was killed while it judged:\n  " +
                                 std::string(ATTEST_BINARY) +
                                 " run --backend scalar.unified@cpu --seed 1 --case "))
      << named.err;
  EXPECT_EQ(named.code, 0);
  EXPECT_FALSE(has(next().err, "killed"));
}

TEST_F(ReproCli, ReproLineIsAsTheProgramWasCalled) {
  const fs::path link = folder / "my attest";
  fs::create_symlink(ATTEST_BINARY, link);
  std::vector<std::string> argv = {link.string()};
  for (const std::string& argument :
       arguments({"--backend", faulty, "--cases", "4", "--shrink-time", "0"})) {
    argv.push_back(argument);
  }
  const Finished run = Subprocess(argv, {{"ATTEST_AMX", "patch"}}).finish();
  EXPECT_TRUE(has(run.out, "again     ATTEST_AMX=patch '" + link.string() + "' run --backend "))
      << run.out;
}

TEST_F(ReproCli, ReadmeShowsWhatIsPrinted) {
  const std::string readme = text_of(fs::path(ATTEST_SOURCE_DIR) / "README.md");
  const std::string again = "again     build/bin/attest run --backend ";
  const std::size_t at = readme.find(again);
  ASSERT_NE(at, std::string::npos);
  std::istringstream words(readme.substr(at + again.size(), 100));
  std::string backend;
  std::string number;
  words >> backend >> number >> number >> number >> number;
  std::vector<std::string> all = {"run",           "--backend", backend, "--case",        number,
                                  "--shrink-time", "50",        "--out", folder / "found"};
  const Finished run = attest_cli(all);
  std::istringstream sample(readme.substr(readme.find("    MISMATCH")));
  int lines = 0;
  for (std::string line; std::getline(sample, line) && !line.empty(); ++lines) {
    line = line.substr(4);
    if (line.starts_with("  saved ")) continue;
    if (line.starts_with("  again ")) line = line.substr(line.find(" run ") + 1);
    EXPECT_TRUE(has(run.out, line + "\n")) << line << "\n" << run.out;
  }
  EXPECT_GT(lines, 6);
}

}  // namespace
}  // namespace attest
