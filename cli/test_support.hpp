#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/subprocess.hpp"

// What the tests of the built binary share.

namespace attest {

bool has(const std::string& text, const std::string& part);
std::string text_of(const std::filesystem::path& path);
/// Until the file has that many lines. \returns false after a minute
bool wait_for_lines(const std::filesystem::path& path, std::int64_t lines);

/// An empty folder, gone when the test ends. A fixture inherits it.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path folder;

 protected:
  std::string save(const std::string& name, const std::string& text) const;
  /// attest run on short cases, failures into the folder.
  std::vector<std::string> arguments(std::vector<std::string> more) const;
};

}  // namespace attest
