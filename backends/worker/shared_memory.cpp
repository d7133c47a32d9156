#include "backends/worker/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "contracts/resource_error.hpp"

namespace attest {
namespace {

constexpr std::size_t granule = std::size_t{1} << 20;

[[noreturn]] void fail(const std::string& step, int error) {
  throw ResourceError(error, step + " of the memory shared with a worker");
}

}  // namespace

SharedMemory::SharedMemory() : fd_(memfd_create("attest-tensors", MFD_CLOEXEC)) {
  if (!fd_.is_open()) fail("memfd_create", errno);
}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) munmap(base_, size_);
}

void SharedMemory::grow(std::size_t bytes) {
  if (bytes <= size_) return;
  const std::size_t wanted = (bytes + granule - 1) / granule * granule;
  // The kernel would hand out pages until the machine has none.
  const auto machine = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (wanted > machine) fail("allocating " + std::to_string(wanted) + " bytes", ENOMEM);
  int error = 0;
  do {
    error = posix_fallocate(fd_.get(), 0, static_cast<off_t>(wanted));
  } while (error == EINTR);
  if (error != 0) fail("allocating " + std::to_string(wanted) + " bytes", error);
  void* const mapped = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) fail("mapping " + std::to_string(wanted) + " bytes", errno);
  if (base_ != nullptr) munmap(base_, size_);
  base_ = static_cast<std::byte*>(mapped);
  size_ = wanted;
}

}  // namespace attest
