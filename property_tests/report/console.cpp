#include "property_tests/report/console.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace attest {

void write_all(int fd, std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EPIPE) throw OutputClosed();
      throw std::system_error(errno, std::generic_category(), std::string(name));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

Console Console::of(int fd, std::string name) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool terminal = ::isatty(fd) == 1;
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return {fd, std::move(name), terminal, terminal && !refused && !dumb};
}

int Console::columns() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Console::painted(std::string_view code, std::string_view text) const {
  if (!colour_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string Console::as(Verdict verdict, std::string_view text) const {
  switch (verdict) {
    case Verdict::pass:
      return good(text);
    case Verdict::unsupported:
    case Verdict::unavailable:
    case Verdict::untrusted:
      return doubtful(text);
    case Verdict::mismatch:
    case Verdict::rejected:
    case Verdict::crashed:
    case Verdict::hung:
      return bad(text);
  }
  return std::string(text);
}

}  // namespace attest
