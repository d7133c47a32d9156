#pragma once

#include <cstddef>
#include <span>

#include "backends/worker/descriptor.hpp"

namespace attest {

/// Anonymous memory (memfd_create) that a worker maps too: tensors go through it. It lies in no
/// file system, so a full /dev/shm does not concern it.
class SharedMemory {
 public:
  /// \throws ResourceError
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  int descriptor() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return {base_, size_}; }

  /// At least `bytes` of real memory from here on; spans of bytes() from before are void. Pages are
  /// taken now, so that a shortage is an error here and no SIGBUS later. \throws ResourceError
  void grow(std::size_t bytes);

 private:
  Descriptor fd_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attest
