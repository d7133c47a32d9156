#include "property_tests/report/console.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace attest {
namespace {

TEST(Console, ColoursOnlyWhereItMay) {
  const Console plain(1, "out", false, false);
  const Console coloured(1, "out", true, true);
  EXPECT_EQ(plain.as(Verdict::mismatch, "1"), "1");
  EXPECT_EQ(coloured.as(Verdict::mismatch, "1"), "\x1b[31;1m1\x1b[0m");
  EXPECT_EQ(coloured.as(Verdict::pass, "1"), "\x1b[32m1\x1b[0m");
}

TEST(Console, IsPlainInAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Console console = Console::of(ends[1], "pipe");
  EXPECT_FALSE(console.terminal());
  EXPECT_FALSE(console.colour());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Console, NamesTheStreamThatIsFull) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  try {
    write_all(full, "text", "writing runs.jsonl");
    FAIL() << "a full device took the text";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), ENOSPC);
    EXPECT_STREQ(error.what(), "writing runs.jsonl: No space left on device");
  }
  ::close(full);
}

TEST(Console, TellsAClosedPipeFromABrokenDisk) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  EXPECT_THROW(write_all(ends[1], "text", "pipe"), OutputClosed);
  ::close(ends[1]);
}

}  // namespace
}  // namespace attest
