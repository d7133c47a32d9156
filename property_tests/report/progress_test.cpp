#include "property_tests/report/progress.hpp"

#include <gtest/gtest.h>

#include "property_tests/report/text_pipe.hpp"
#include "property_tests/report/text_terminal.hpp"

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

/// The line of a run on a terminal of so many columns, without the codes that erase the one before.
std::string line_on(unsigned short columns, const std::string& what, bool colour = false) {
  TextTerminal terminal(columns);
  Progress progress(Console(terminal.writer(), "terminal", true, colour));
  const Clock::time_point start{};
  progress.begin(what, 2000, start);
  progress.advance(1500, 12, start + seconds(30));
  const std::string text = terminal.text();
  EXPECT_TRUE(text.starts_with("\r\x1b[K")) << text;
  return text.substr(4);
}

TEST(Progress, FitsTheTerminal) {
  const std::string what = "faulty-softmax_sum_not_rescaled.unified@cpu";
  EXPECT_EQ(line_on(120, what), what + "  1500/2000  12 failed  50.0 cases/s  10.0 s left");
  EXPECT_EQ(line_on(80, what), what + "  1500/2000  12 failed  10.0 s left");
  EXPECT_EQ(line_on(67, what), what + "  1500/2000  12 failed");
  EXPECT_EQ(line_on(40, what), "faulty-s..ied@cpu  1500/2000  12 failed");
  EXPECT_EQ(line_on(24, what), "f  1500/2000  12 failed");
  EXPECT_EQ(line_on(10, what), "  1500/20");
  for (unsigned short columns = 1; columns < 120; ++columns) {
    EXPECT_LE(line_on(columns, what).size(), std::max(1, columns - 1)) << columns;
  }
}

TEST(Progress, CountsColumnsWithoutColours) {
  EXPECT_EQ(line_on(54, "scalar.unified@cpu", true),
            "scalar.unified@cpu  1500/2000\x1b[31;1m  12 failed\x1b[0m  10.0 s left");
}

TEST(Progress, FollowsATerminalThatIsResized) {
  TextTerminal terminal(100);
  Progress progress(Console(terminal.writer(), "terminal", true, false));
  const Clock::time_point start{};
  progress.begin("scalar.unified@cpu", 2000, start);
  progress.advance(100, 0, start + seconds(10));
  EXPECT_EQ(terminal.text(), "\r\x1b[Kscalar.unified@cpu  100/2000  10.0 cases/s  3 min 10 s left");
  terminal.resize(40);
  progress.advance(200, 0, start + seconds(20));
  EXPECT_EQ(terminal.text(), "\r\x1b[Kscalar.unified@cpu  200/2000");
}

}  // namespace
}  // namespace attest
