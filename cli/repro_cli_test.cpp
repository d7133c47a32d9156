#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// The process whose parent is `parent`, once there is one; -1 after a minute.
pid_t child_of(pid_t parent) {
  for (int i = 0; i < 3000; ++i) {
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc", gone)) {
      std::ifstream stat(entry.path() / "stat");
      std::string name, state;
      pid_t pid = -1, its_parent = -1;
      if (stat >> pid >> name >> state >> its_parent && its_parent == parent) return pid;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return -1;
}

/// A kernel that hangs must not outlive the harness, which nobody gave time to end it.
TEST_F(ReproCli, KilledRunTakesItsWorkerAlong) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // the orphan becomes ours, to see its end
  std::vector<std::string> argv = {ATTEST_BINARY};
  for (const std::string& argument : arguments(
           {"--backend", "faulty-hang.unified@cpu", "--cases", "1", "--time-limit", "3600"})) {
    argv.push_back(argument);
  }
  Subprocess run(argv, {{"TMPDIR", folder.string()}});
  const pid_t harness = child_of(::getpid());
  const pid_t worker = child_of(harness);
  ASSERT_GT(worker, 0);
  run.send(SIGKILL);
  EXPECT_EQ(run.finish().code, 137);
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 3000 && ended == 0; ++i) {
    ended = ::waitpid(worker, &status, WNOHANG);
    if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (ended == 0) ::kill(worker, SIGKILL);
  EXPECT_EQ(ended, worker) << "it outlived the run";
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
