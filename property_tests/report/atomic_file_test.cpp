#include "property_tests/report/atomic_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>

namespace attest {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }

  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  const fs::path folder =
      fs::path(testing::TempDir()) / ("attest_atomic_file_test." + std::to_string(getpid()));
};

TEST_F(AtomicFile, ReplacesTheOldText) {
  fs::create_directories(folder);
  const fs::path path = folder / "a.json";
  write_atomically(path, "old and longer");
  write_atomically(path, "new");
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), {}), 1);
}

TEST_F(AtomicFile, LeavesNoPartBehindWhenItFails) {
  fs::create_directories(folder / "a.json");  // a folder where the file should go
  std::ofstream(folder / "a.json" / "inside") << "x";
  EXPECT_THROW(write_atomically(folder / "b" / ".." / "a.json", "text"), std::system_error);
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << entry.path();
  }
}

TEST_F(AtomicFile, MakesNoFolders) {
  EXPECT_THROW(write_atomically(folder / "mistyped" / "a.json", "text"), std::system_error);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(AtomicFile, WritesThroughALinkAndLeavesIt) {
  fs::create_directories(folder / "elsewhere");
  const fs::path link = folder / "link.xml";
  fs::create_symlink("elsewhere/real.xml", link);
  for (const char* text : {"created", "replaced"}) {
    write_atomically(link, text);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(text_of(folder / "elsewhere" / "real.xml"), text);
  }
}

/// What is written first has a name that can be guessed.
TEST_F(AtomicFile, WritesNothingWhereALinkWaitsForIt) {
  fs::create_directories(folder);
  const fs::path page = folder / "page.html";
  const fs::path waits = page.string() + ".part" + std::to_string(getpid());
  fs::create_symlink("elsewhere.txt", waits);
  write_atomically(page, "text");
  EXPECT_EQ(text_of(page), "text");
  EXPECT_FALSE(fs::exists(folder / "elsewhere.txt"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(waits)));
}

TEST_F(AtomicFile, NamesALinkToItself) {
  fs::create_directories(folder);
  fs::create_symlink("loop.xml", folder / "loop.xml");
  try {
    write_atomically(folder / "loop.xml", "text");
    FAIL() << "a loop took the text";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("loop.xml"), std::string::npos) << error.what();
  }
}

TEST_F(AtomicFile, ContinuesAnOpenDescriptor) {
  fs::create_directories(folder);
  const fs::path path = folder / "out.txt";
  std::ofstream file(path);
  file << "table\n" << std::flush;
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND);
  write_atomically("/proc/self/fd/" + std::to_string(fd), "<testsuites/>\n");
  ::close(fd);
  EXPECT_EQ(text_of(path), "table\n<testsuites/>\n");
}

TEST_F(AtomicFile, WritesIntoADeviceInsteadOfReplacingIt) {
  try {
    write_atomically("/dev/full", "text");
    FAIL() << "a full device took the text";
  } catch (const std::system_error& error) {
    EXPECT_STREQ(error.what(), "writing /dev/full: No space left on device");
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace attest
