#include "property_tests/report/progress.hpp"

#include <gtest/gtest.h>

#include "property_tests/report/text_pipe.hpp"

namespace attest {
namespace {

using std::chrono::seconds;
using Clock = Progress::Clock;

TEST(Progress, InAPipeIsAPlainLineEveryFewSeconds) {
  TextPipe pipe;
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
  TextPipe pipe;
  Progress progress(Console(pipe.writer(), "pipe", false, false));
  const Clock::time_point start{};
  progress.begin("scalar", 100, start);
  progress.advance(100, 0, start + seconds(1));
  progress.end(start + seconds(1));
  EXPECT_EQ(pipe.text(), "");
}

TEST(Progress, OnATerminalRewritesOneLineAndTakesItAway) {
  TextPipe pipe;
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
