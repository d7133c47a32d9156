#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

// The host engine under AddressSanitizer, in a child that is always built with it: see
// asan_test_child.cpp.

namespace attest::hip {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  int status = -1;
  std::string output;
};

Ran run_child(const std::string& deed) {
  const std::string command = std::string(ATTEST_HIP_ASAN_CHILD) + " " + deed + " 2>&1";
  Ran ran;
  std::FILE* pipe = popen(command.c_str(), "r");  // NOLINT: a fixed path and word
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) ran.output += buffer.data();
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// "asan_test_child.cpp:N" of the line that ends with the comment "the deed".
std::string line_of_the_deed() {
  std::ifstream source(std::string(ATTEST_SOURCE_DIR) +
                       "/backends/hip/runtime/asan_test_child.cpp");
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (line.ends_with("// the deed")) return "asan_test_child.cpp:" + std::to_string(number);
  }
  return "no such line";
}

TEST(HostEngineUnderAsan, CleanKernelsAreClean) {
  const Ran ran = run_child("nothing");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(ran.output, "done\n");
}

TEST(HostEngineUnderAsan, AWriteOneByteOutsideSharedMemoryNamesTheKernelsLine) {
  for (const char* deed : {"past", "before"}) {
    const Ran ran = run_child(deed);
    EXPECT_NE(ran.status, 0);
    EXPECT_THAT(ran.output, AllOf(HasSubstr("AddressSanitizer: use-after-poison"),
                                  HasSubstr("WRITE of size 1"), HasSubstr(line_of_the_deed())));
  }
}

TEST(HostEngineUnderAsan, AnOverrunInAThreadsOwnFrameIsSeenOnItsFiber) {
  const Ran ran = run_child("frame");
  EXPECT_NE(ran.status, 0);
  EXPECT_THAT(ran.output, AllOf(HasSubstr("AddressSanitizer: "), HasSubstr("'local'")));
}

TEST(HostEngineUnderAsan, ExceptionsOnFibersLeaveNoWarning) {
  const Ran ran = run_child("throw");
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("thread (3,0,0): thrown on purpose"),
                                Not(HasSubstr("AddressSanitizer")), Not(HasSubstr("WARNING"))));
}

}  // namespace
}  // namespace attest::hip
