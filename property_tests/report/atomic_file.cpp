#include "property_tests/report/atomic_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
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

void write_through(const std::filesystem::path& path, std::string_view text, int flags, bool sync) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
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

/// An open descriptor under a name: its file may have any place, or none.
bool is_descriptor(const std::filesystem::path& path) {
  struct statfs system{};
  return ::statfs(path.parent_path().c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// What `path` is a name of: links are followed, also where the last one points to nothing yet.
std::filesystem::path target_of(std::filesystem::path path) {
  constexpr int most_links = 40;  // as the kernel's own limit
  for (int links = 0; links < most_links; ++links) {
    std::error_code none;
    if (is_descriptor(path)) return path;
    const std::filesystem::path next = std::filesystem::read_symlink(path, none);
    if (none) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  errno = ELOOP;
  fail("creating", path);
}

}  // namespace

void write_atomically(const std::filesystem::path& named, std::string_view text) {
  const std::filesystem::path path = target_of(named);
  if (is_descriptor(path)) return write_through(path, text, O_APPEND, false);
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    // A pipe or a device: renaming onto it would replace it.
    return write_through(path, text, 0, false);
  }
  const std::filesystem::path part =
      path.string() + ".part" + std::to_string(static_cast<long>(::getpid()));
  try {
    // Its name can be guessed: neither what a killed process left nor a link that waits there is
    // written to.
    std::filesystem::remove(part, none);
    write_through(part, text, O_CREAT | O_EXCL | O_NOFOLLOW, true);
    std::error_code error;
    std::filesystem::rename(part, path, error);
    if (error) throw std::system_error(error, "replacing " + path.string());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
    throw;
  }
}

}  // namespace attest
