#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <system_error>

#include "property_tests/in_flight.hpp"
#include "property_tests/in_flight_lines.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct KeptFile {
  fs::path path;
  int fd = -1;  ///< locked as long as the process lives
};
KeptFile kept;

/// A folder of this user that nobody else can write; the temporary directory is everybody's.
bool own_folder(const fs::path& folder) {
  struct stat there{};
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return false;
  return ::lstat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode) &&
         there.st_uid == ::getuid() && (there.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Lines of a file whose process is gone; removes it.
void take_lines(const fs::path& path, std::vector<std::string>& lines) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      line.erase(0, line.find_first_not_of('\0'));
      if (!line.empty()) lines.push_back(line);
    }
    ::unlink(path.c_str());
  }
  ::close(fd);
}

std::byte* map_file(int fd, std::size_t bytes) {
  // Space first: a store to a mapped page that a full disk cannot hold would kill the process.
  if (::posix_fallocate(fd, 0, static_cast<off_t>(bytes)) != 0) return nullptr;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

std::vector<std::string> keep_in_flight_in(const fs::path& folder) {
  std::vector<std::string> lines;
  if (!own_folder(folder)) return lines;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".running") take_lines(entry.path(), lines);
  }
  kept.path = folder / (std::to_string(::getpid()) + ".running");
  kept.fd = ::open(kept.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (kept.fd < 0) return lines;
  ::flock(kept.fd, LOCK_EX | LOCK_NB);
  std::byte* const at = map_file(kept.fd, mirrored_bytes);
  if (at == nullptr) {
    forget_in_flight();
  } else {
    mirror_lines(at);
  }
  return lines;
}

void forget_in_flight() {
  if (kept.fd < 0) return;
  ::unlink(kept.path.c_str());
  ::close(kept.fd);
  kept.fd = -1;
}

}  // namespace attest
