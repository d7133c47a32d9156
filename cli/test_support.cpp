#include "cli/test_support.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

namespace attest {
namespace {

std::filesystem::path new_folder() {
  static std::atomic<int> made = 0;
  const std::string name =
      "attest_cli_test_" + std::to_string(::getpid()) + "_" + std::to_string(made++);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const std::filesystem::path& path) {
  const std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool wait_for_lines(const std::filesystem::path& path, std::int64_t lines) {
  for (int i = 0; i < 3000; ++i) {
    const std::string text = text_of(path);
    if (std::count(text.begin(), text.end(), '\n') >= lines) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

ScratchFolder::ScratchFolder() : folder(new_folder()) {}
ScratchFolder::~ScratchFolder() {
  std::error_code left;
  std::filesystem::remove_all(folder, left);
}

std::string ScratchFolder::save(const std::string& name, const std::string& text) const {
  std::ofstream(folder / name) << text;
  return (folder / name).string();
}

std::vector<std::string> ScratchFolder::arguments(std::vector<std::string> more) const {
  std::vector<std::string> all = {"run",   "--max-kv",      "48", "--max-requests", "2",
                                  "--out", folder / "found"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace attest
