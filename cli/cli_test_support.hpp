#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/subprocess.hpp"

// What the tests of the built binary share.

namespace attest {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Until the file has that many lines; a minute at most.
inline void wait_for_lines(const std::filesystem::path& path, std::int64_t lines) {
  for (int i = 0; i < 3000; ++i) {
    const std::string text = text_of(path);
    if (std::count(text.begin(), text.end(), '\n') >= lines) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  FAIL() << path << " stays short";
}

/// A test with an empty folder of its own.
class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string save(const std::string& name, const std::string& text) const {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  }

  /// attest run on short cases, failures into the test's folder.
  std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> all = {"run",   "--max-kv",      "48", "--max-requests", "2",
                                    "--out", folder / "found"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      (std::string("attest_") +
       testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

}  // namespace attest
