#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace attest::hip::host {

/// The dynamic shared memory of a block. AddressSanitizer sees every byte outside it; without the
/// sanitizer a write close by is found when the block ends.
class SharedMemory {
 public:
  ~SharedMemory();
  /// Makes `bytes` of it and fills them with NaN (of f32, f16, bf16 and e4m3fn).
  std::byte* fill(std::size_t bytes);
  /// Where it was overrun or underrun: "byte 1028 of 1024", "byte -4"; empty when nowhere.
  std::string damage() const;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace attest::hip::host
