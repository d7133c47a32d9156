#include "property_tests/required_engines.hpp"

#include <gtest/gtest.h>

#include <array>

namespace attest {
namespace {

BackendTally ran(const std::string& backend, int cases) {
  BackendTally tally;
  tally.backend = backend;
  tally.verdicts[0] = cases;
  return tally;
}

TEST(RequiredEngines, AreMetByCasesThatRanOnThem) {
  const std::array tallies = {ran("amx.extend@native", 3)};
  EXPECT_TRUE(engines_not_run("amx@native", tallies).empty());
  EXPECT_TRUE(engines_not_run("", tallies).empty());
}

TEST(RequiredEngines, AreNotMetByAnEmulatedOne) {
  const std::array tallies = {ran("amx.extend@patch", 3), ran("hip.unified@host", 3)};
  EXPECT_EQ(engines_not_run("amx@native,hip@rocm", tallies),
            (std::vector<std::string>{"ATTEST_REQUIRE names amx@native, and no case ran on it",
                                      "ATTEST_REQUIRE names hip@rocm, and no case ran on it"}));
}

TEST(RequiredEngines, AreReadWithoutTheSpacesAroundThem) {
  const std::array tallies = {ran("amx.extend@native", 3)};
  EXPECT_TRUE(engines_not_run(" amx@native ", tallies).empty());
  EXPECT_EQ(engines_not_run("amx@native,", tallies).size(), 1U) << "an empty part is not met";
}

TEST(RequiredEngines, AreNotMetByBeingAvailable) {
  const std::array tallies = {ran("amx.extend@native", 0)};
  EXPECT_EQ(engines_not_run("amx@native", tallies).size(), 1U);
}

}  // namespace
}  // namespace attest
