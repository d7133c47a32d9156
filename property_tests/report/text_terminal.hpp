#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace attest {

/// A terminal of so many columns whose text can be read back, for tests.
class TextTerminal {
 public:
  explicit TextTerminal(unsigned short columns) : screen_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0) {
      throw std::runtime_error("no pseudo terminal");
    }
    std::array<char, 128> path{};
    if (::ptsname_r(screen_, path.data(), path.size()) != 0) throw std::runtime_error("ptsname_r");
    program_ = ::open(path.data(), O_RDWR | O_NOCTTY);
    if (program_ < 0) throw std::runtime_error(path.data());
    termios raw{};
    ::tcgetattr(program_, &raw);
    ::cfmakeraw(&raw);
    ::tcsetattr(program_, TCSANOW, &raw);
    resize(columns);
  }
  TextTerminal(const TextTerminal&) = delete;
  TextTerminal& operator=(const TextTerminal&) = delete;
  ~TextTerminal() {
    ::close(program_);
    ::close(screen_);
  }
  void resize(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    ::ioctl(screen_, TIOCSWINSZ, &size);
  }
  int writer() const { return program_; }
  /// What was written since the last call.
  std::string text() {
    std::string all;
    std::array<char, 4096> buffer{};
    for (pollfd ready{screen_, POLLIN, 0}; ::poll(&ready, 1, 0) > 0;) {
      const ssize_t size = ::read(screen_, buffer.data(), buffer.size());
      if (size <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return all;
  }

 private:
  int screen_ = -1;
  int program_ = -1;
};

}  // namespace attest
