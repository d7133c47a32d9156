#include "property_tests/report/progress.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace attest {
namespace {

using std::chrono::seconds;
using Clock = Progress::Clock;

/// A pipe whose written text can be read back.
class Pipe {
 public:
  Pipe() {
    if (::pipe(ends_.data()) != 0) throw std::runtime_error("pipe");
  }
  ~Pipe() { ::close(ends_[0]); }
  int writer() const { return ends_[1]; }
  std::string text() {
    ::close(ends_[1]);
    std::array<char, 4096> buffer{};
    const ssize_t size = ::read(ends_[0], buffer.data(), buffer.size());
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  std::array<int, 2> ends_{};
};

TEST(Progress, InAPipeIsAPlainLineEveryFewSeconds) {
  Pipe pipe;
  Progress progress(Console(pipe.writer(), "pipe", false, false));
  const Clock::time_point start{};
  progress.begin("scalar", 100, start);
  progress.advance(10, 0, start + seconds(1));
  progress.advance(60, 2, start + seconds(6));
  progress.advance(70, 2, start + seconds(7));
  progress.end(start + seconds(10));
  EXPECT_EQ(pipe.text(),
            "scalar  60/100  2 failed  10.0 cases/s  4.00 s left\n"
            "scalar  70/100  2 failed  7.00 cases/s  4.29 s left\n");
}

TEST(Progress, InAPipeIsSilentAboutAShortRun) {
  Pipe pipe;
  Progress progress(Console(pipe.writer(), "pipe", false, false));
  const Clock::time_point start{};
  progress.begin("scalar", 100, start);
  progress.advance(100, 0, start + seconds(1));
  progress.end(start + seconds(1));
  EXPECT_EQ(pipe.text(), "");
}

TEST(Progress, OnATerminalRewritesOneLineAndTakesItAway) {
  Pipe pipe;
  Progress progress(Console(pipe.writer(), "terminal", true, false));
  const Clock::time_point start{};
  progress.begin("scalar", 100, start);
  progress.advance(1, 0, start + std::chrono::milliseconds(50));
  progress.advance(50, 0, start + seconds(5));
  progress.advance(51, 0, start + seconds(5));
  progress.end(start + seconds(6));
  EXPECT_EQ(pipe.text(), "\r\x1b[Kscalar  50/100  10.0 cases/s  5.00 s left\r\x1b[K");
}

}  // namespace
}  // namespace attest
