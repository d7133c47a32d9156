#include "contracts/printable.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace attest {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "plain text, \\n in it", "größer ≤ 3 \xF0\x9F\x98\x80"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, EscapesWhatCommandsATerminal) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f"), "a\\x1b[2Jb\\x7f");
  EXPECT_EQ(printable("line\nforged\r\tline"), "line\\nforged\\r\\tline");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\u009b2J")
      << "CSI as one C1 character";
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b\xE2\x80\xA8"
                      "c"),
            "a\\u202eb\\u2028c");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b2J");
  EXPECT_EQ(printable("\xC3"), "\\xc3");
  EXPECT_EQ(printable("\xC0\x8A"), "\\xc0\\x8a") << "an overlong line feed";
  EXPECT_EQ(printable("\xE0\x80\x8A"), "\\xe0\\x80\\x8a");
}

TEST(Printable, ChangesNothingTheSecondTime) {
  const std::string once = printable("\x1b[31m\n\xff");
  EXPECT_EQ(printable(once), once);
}

TEST(Joined, HasACommaBetweenWordsAlone) {
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
  EXPECT_EQ(joined(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
}

}  // namespace
}  // namespace attest
