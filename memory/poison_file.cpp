#include "memory/poison_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>

#include "memory/pool_memory.hpp"

namespace attest {

void fail_pool(const std::string& what) {
  const int error = errno;
  const char* const symbol = strerrorname_np(error);
  std::string text = "sparse KV pool: " + what + ": " + (symbol ? symbol : "?");
  if (error == ENOMEM) text += " (" + likely_limit(memory_limits()) + ")";
  throw std::system_error(error, std::generic_category(), text);
}

int poison_file(Dtype dtype, Poison poison, Region region, std::int64_t bytes) {
  static std::mutex mutex;
  static std::map<std::tuple<std::uint32_t, std::size_t, std::int64_t>, int> files;
  const std::uint32_t bits = poison_bits(dtype, poison, region);
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = files.try_emplace({bits, size_bytes(dtype), bytes}, -1);
  if (at->second >= 0) return at->second;
  const int fd = memfd_create("attest-poison", MFD_CLOEXEC);
  if (fd < 0) fail_pool("memfd_create of the poison");
  std::array<std::byte, 65536> block;
  fill_poison(block, dtype, poison, region);
  for (std::int64_t done = 0; done < bytes;) {
    const ssize_t written = write(fd, block.data(), block.size());
    if (written <= 0) {
      const int error = errno;
      close(fd);
      errno = error;
      fail_pool("writing " + std::to_string(bytes) + " bytes of poison");
    }
    done += written;
  }
  return at->second = fd;
}

}  // namespace attest
