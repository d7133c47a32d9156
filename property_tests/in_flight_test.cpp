#include "property_tests/in_flight.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace attest {
namespace {

TEST(InFlightDeathTest, AFaultPrintsTheLinesOfAllThreadsAndStillKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        print_in_flight_on_fatal_signals();
        const InFlight mine("attest run --case 3");
        std::thread([] {
          InFlight other("attest run --case 4");
          other.now("attest run --case 5");
          __builtin_trap();
        }).join();
      },
      testing::KilledBySignal(SIGILL),
      "killed by a signal while it judged:\n  attest run --case 3\n  attest run --case 5\n");
}

TEST(InFlightDeathTest, AFinishedCaseIsNotBlamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        print_in_flight_on_fatal_signals();
        {
          const InFlight done("attest run --case 3");
        }
        const InFlight now("attest run --case 4");
        __builtin_trap();
      },
      testing::KilledBySignal(SIGILL), "while it judged:\n  attest run --case 4\n");
}

}  // namespace
}  // namespace attest
