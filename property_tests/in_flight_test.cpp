#include "property_tests/in_flight.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
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

/// Takes all of the stack: the bottom is 2 TiB away.
int descend(int depth) {
  volatile char frame[1024] = {};
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : descend(depth + 1) + frame[0];
}

TEST(InFlightDeathTest, AThreadWithoutStackLeftPrintsItsLineAllTheSame) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        print_in_flight_on_fatal_signals();
        std::thread([] {
          const InFlight line("attest run --case 7");
          ::_exit(descend(0));
        }).join();
      },
      [](int status) { return status != 0; },
      "killed by a signal while it judged:\n  attest run --case 7\n");
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

class InFlightFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) /
      (std::string("attest_in_flight_") +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

/// A process that keeps its lines in `folder`, judges, and ends as `end` does.
template <class End>
void child(const std::filesystem::path& folder, End&& end) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    keep_in_flight_in(folder);
    const InFlight first("attest run --case 3");
    InFlight second("attest run --case 4, a long line that a shorter one replaces");
    second.now("attest run --case 5");
    end();
    ::_exit(0);
  }
  ::waitpid(pid, nullptr, 0);
}

TEST_F(InFlightFile, OutlivesAKilledProcessOnce) {
  child(folder, [] { ::raise(SIGKILL); });
  EXPECT_THAT(keep_in_flight_in(folder),
              testing::ElementsAre("attest run --case 3", "attest run --case 5"));
  forget_in_flight();
  EXPECT_THAT(keep_in_flight_in(folder), testing::IsEmpty());
  forget_in_flight();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(InFlightFile, IsGoneAfterAnOrderlyEnd) {
  child(folder, [] { forget_in_flight(); });
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(InFlightFile, OfARunningProcessIsLeftAlone) {
  child(folder, [&] {
    // A second process of the same user starts while this one judges.
    const pid_t other = ::fork();
    if (other == 0) ::_exit(keep_in_flight_in(folder).empty() ? 0 : 1);
    int status = 0;
    ::waitpid(other, &status, 0);
    if (status == 0) forget_in_flight();
  });
  EXPECT_THAT(keep_in_flight_in(folder), testing::IsEmpty());
  forget_in_flight();
}

TEST_F(InFlightFile, IsNotKeptInAFolderThatOthersCanWrite) {
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  EXPECT_THAT(keep_in_flight_in(folder), testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace attest
