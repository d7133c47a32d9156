#include "property_tests/report/atomic_file.hpp"

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

TEST_F(AtomicFile, MakesFoldersAndReplacesTheOldText) {
  const fs::path path = folder / "deep" / "a.json";
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
