#include "property_tests/report/numbers.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace attest {
namespace {

TEST(Numbers, KeepThreeDigitsBelowAThousand) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.4125), "0.412");
  EXPECT_EQ(short_number(1.857), "1.86");
  EXPECT_EQ(short_number(85.14), "85.1");
  EXPECT_EQ(short_number(1234.5), "1234");
  EXPECT_EQ(short_number(3.1e7), "3.1e+07");
}

TEST(Numbers, SayNanAndInfinity) {
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Numbers, ChangeTheUnitOfALongDuration) {
  EXPECT_EQ(duration(0.012), "0.01 s");
  EXPECT_EQ(duration(12.34), "12.3 s");
  EXPECT_EQ(duration(185), "3 min 05 s");
  EXPECT_EQ(duration(7620), "2 h 07 min");
}

TEST(Numbers, NeverRoundASmallShareToNothing) {
  EXPECT_EQ(percent(1, 1000), "<1 %");
  EXPECT_EQ(percent(0, 1000), "0 %");
  EXPECT_EQ(percent(61, 100), "61 %");
  EXPECT_EQ(percent(1, 0), "-");
}

TEST(Numbers, UseBinaryUnitsForBytes) {
  EXPECT_EQ(bytes_in_words(512), "512 B");
  EXPECT_EQ(bytes_in_words(3.2 * 1024 * 1024 * 1024), "3.2 GiB");
}

TEST(Numbers, AgreeWithTheirNoun) {
  EXPECT_EQ(counted(1, "case"), "1 case");
  EXPECT_EQ(counted(0, "case"), "0 cases");
}

}  // namespace
}  // namespace attest
