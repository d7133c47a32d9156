#pragma once

#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

namespace attest {

/// A pipe whose written text can be read back, for tests of what writes to descriptors. Holds as
/// much as the kernel's buffer, 64 KiB.
class TextPipe {
 public:
  TextPipe() {
    if (::pipe(ends_.data()) != 0) throw std::runtime_error("pipe");
  }
  TextPipe(const TextPipe&) = delete;
  TextPipe& operator=(const TextPipe&) = delete;
  ~TextPipe() {
    ::close(ends_[0]);
    if (open_) ::close(ends_[1]);
  }
  int writer() const { return ends_[1]; }
  /// Everything written; nothing can be written afterwards.
  std::string text() {
    ::close(ends_[1]);
    open_ = false;
    std::string all;
    std::array<char, 4096> buffer{};
    for (ssize_t size = 1; size > 0;) {
      size = ::read(ends_[0], buffer.data(), buffer.size());
      if (size > 0) all.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return all;
  }

 private:
  std::array<int, 2> ends_{};
  bool open_ = true;
};

}  // namespace attest
