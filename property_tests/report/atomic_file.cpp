#include "property_tests/report/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "property_tests/report/console.hpp"

namespace attest {
namespace {

[[noreturn]] void fail(const char* step, const std::filesystem::path& path) {
  const int error = errno;
  throw std::system_error(error, std::generic_category(), std::string(step) + " " + path.string());
}

void write_through(const std::filesystem::path& path, std::string_view text, bool sync) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail("creating", path);
  try {
    write_all(fd, text, "writing " + path.string());
    if (sync && ::fsync(fd) != 0) fail("syncing", path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  if (::close(fd) != 0) fail("closing", path);
}

}  // namespace

void write_atomically(const std::filesystem::path& path, std::string_view text) {
  const auto status = std::filesystem::status(path);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A pipe or a device: renaming onto it would replace it.
    write_through(path, text, false);
    return;
  }
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  const std::filesystem::path part =
      path.string() + ".part" + std::to_string(static_cast<long>(::getpid()));
  try {
    write_through(part, text, true);
    std::filesystem::rename(part, path);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

}  // namespace attest
