#include "property_tests/report/text_table.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

using enum TextTable::Align;

TEST(TextTable, AlignsCellsUnderTheirTitles) {
  TextTable table({{"name", left}, {"cases", right}});
  table.add({"a", "7"});
  table.add({"longer", "1200"});
  EXPECT_EQ(table.str(),
            "name    cases\n"
            "a           7\n"
            "longer   1200\n");
}

TEST(TextTable, GivesColoursNoWidth) {
  TextTable table({{"n", right}, {"m", right}});
  table.add({"\x1b[31m12\x1b[0m", "3"});
  table.add({"4", "5"});
  EXPECT_EQ(table.str(), " n  m\n\x1b[31m12\x1b[0m  3\n 4  5\n");
}

TEST(TextTable, CountsCodePointsNotBytes) { EXPECT_EQ(display_width("µs"), 2U); }

TEST(TextTable, LeavesMissingCellsEmptyWithoutTrailingSpaces) {
  TextTable table({{"a", left}, {"b", left}});
  table.add({"x"});
  table.add({});
  EXPECT_EQ(table.str(), "a  b\nx\n\n");
}

TEST(TextTable, HasNoTitleLineWithoutTitles) {
  TextTable table({{"", left}, {"", left}});
  table.add({"x", "y"});
  EXPECT_EQ(table.str(), "x  y\n");
}

}  // namespace
}  // namespace attest
