#include "backends/worker/worker_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "backends/backend.hpp"
#include "backends/worker/frame.hpp"
#include "backends/worker/shared_memory.hpp"
#include "contracts/resource_error.hpp"

namespace attest {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto patient = 30s;  // never reached where the child answers
constexpr auto short_limit = 150ms;

std::vector<std::string> child() { return {ATTEST_WORKER_TEST_CHILD}; }

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(fds), end(fds)));
}

bool has_no_children() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST(Worker, EchoesRequestsOfEverySizeFromOneProcess) {
  WorkerProcess worker(child());
  EXPECT_EQ(worker.pid(), -1);
  for (const std::size_t size : {0UL, 1UL, 65535UL, 65536UL, 5'000'000UL}) {
    const std::string request(size, 'x');
    const WorkerAnswer answer = worker.ask(request, patient);
    ASSERT_EQ(answer.outcome, WorkerOutcome::reply) << answer.how << answer.last_words;
    ASSERT_EQ(answer.reply, "echo " + request);
  }
  EXPECT_EQ(worker.starts(), 1);
}

TEST(Worker, ReportsTheSignalAndTheLastWordsOfACrash) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("segfault", patient);
  EXPECT_EQ(answer.outcome, WorkerOutcome::crashed);
  EXPECT_THAT(answer.how, HasSubstr("signal 11"));
  EXPECT_THAT(answer.last_words, HasSubstr("about to crash"));
  EXPECT_EQ(worker.pid(), -1);
}

TEST(Worker, ReportsTheExitStatus) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("exit", patient);
  EXPECT_EQ(answer.outcome, WorkerOutcome::crashed);
  EXPECT_EQ(answer.how, "exit status 3");
}

TEST(Worker, KillsAProcessThatDoesNotAnswerInTime) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("hang", short_limit);
  EXPECT_EQ(answer.outcome, WorkerOutcome::hung);
  EXPECT_EQ(answer.how, "no reply within 150 ms");
  EXPECT_TRUE(has_no_children());
}

TEST(Worker, AnswersAgainAfterACrashAndAHang) {
  WorkerProcess worker(child());
  worker.ask("segfault", patient);
  worker.ask("hang", short_limit);
  EXPECT_EQ(worker.ask("hello", patient).reply, "echo hello");
  EXPECT_EQ(worker.starts(), 3);
}

TEST(Worker, SaysWhenAReplyBreaksOff) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("partial", patient);
  EXPECT_EQ(answer.outcome, WorkerOutcome::crashed);
  EXPECT_EQ(answer.how, "exit status 0 in the middle of a reply");
}

TEST(Worker, RefusesAFrameThatIsNotOurs) {
  WorkerProcess worker(child());
  EXPECT_THAT(worker.ask("magic", patient).how, HasSubstr("frame starts with 58 54 53 54"));
  EXPECT_THAT(worker.ask("version", patient).how, HasSubstr("frame has version 99"));
  EXPECT_THAT(worker.ask("huge", patient).how, HasSubstr("the limit is 268435456"));
  EXPECT_TRUE(has_no_children());
}

TEST(Worker, EndsAProcessThatClosedItsSocketButRunsOn) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("close", patient);
  EXPECT_EQ(answer.outcome, WorkerOutcome::crashed);
  EXPECT_THAT(answer.how, HasSubstr("closed its socket"));
  EXPECT_TRUE(has_no_children());
}

TEST(Worker, KeepsTheEndOfALongOutputAndStdoutApartFromOurs) {
  WorkerProcess worker(child());
  const WorkerAnswer answer = worker.ask("noise", patient);
  EXPECT_EQ(answer.reply, "echo noise");
  EXPECT_THAT(answer.last_words, HasSubstr("line 19999 of"));
  EXPECT_THAT(answer.last_words, HasSubstr("and this went to stdout"));
  EXPECT_LE(answer.last_words.size(), 16384U);
}

TEST(Worker, DoesNotTakeAnUnaskedReplyForTheNextOne) {
  WorkerProcess worker(child());
  worker.ask("twice", patient);
  // The second frame may need a moment; whenever it is there, the process is replaced.
  while (worker.starts() == 1) {
    std::this_thread::sleep_for(1ms);
    const WorkerAnswer next = worker.ask("next", patient);
    if (worker.starts() == 2) {
      EXPECT_EQ(next.reply, "echo next");
    }
  }
}

TEST(Worker, ReplacesAProcessThatDiedBetweenRequests) {
  WorkerProcess worker(child());
  worker.ask("hello", patient);
  kill(worker.pid(), SIGKILL);
  while (worker.starts() == 1) {
    const WorkerAnswer answer = worker.ask("again", patient);
    if (answer.outcome == WorkerOutcome::reply) {
      EXPECT_EQ(answer.reply, "echo again");
    }
  }
  EXPECT_EQ(worker.ask("again", patient).reply, "echo again");
}

TEST(Worker, TakesItsOwnChildrenWithIt) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // the orphan becomes ours, so that we see its end
  WorkerProcess worker(child());
  const pid_t grandchild = std::stoi(worker.ask("grandchild", patient).reply);
  EXPECT_EQ(kill(grandchild, 0), 0);
  worker.stop();
  int status = 0;
  EXPECT_EQ(waitpid(grandchild, &status, 0), grandchild);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(Worker, LeaksNoDescriptorAndNoZombieOverAHundredRestarts) {
  const std::size_t before = open_descriptors();
  WorkerProcess worker(child());
  for (int i = 0; i < 100; ++i) {
    const std::string request = i % 2 == 0 ? "exit" : "echo";
    worker.ask(request, patient);
    worker.stop();
  }
  EXPECT_EQ(worker.starts(), 100);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(has_no_children());
}

TEST(Worker, DiesWithTheThreadThatStartedIt) {
  pid_t pid = -1;
  std::unique_ptr<WorkerProcess> worker;
  std::thread([&] {
    worker = std::make_unique<WorkerProcess>(child());
    worker->ask("hello", patient);
    pid = worker->pid();
  }).join();
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(info.si_pid, pid);
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST(Worker, ThatCannotBeStartedNamesTheProgramAndTheError) {
  WorkerProcess worker({"/nonexistent/attest", "worker"});
  const std::size_t before = open_descriptors();
  try {
    worker.ask("hello", patient);
    FAIL() << "nothing was thrown";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/attest"));
    EXPECT_THAT(error.what(), HasSubstr("No such file"));
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(has_no_children());
}

TEST(Worker, MayTellWhatItIsDoingBeforeItReplies) {
  WorkerProcess worker(child(), {.interim_prefix = "~"});
  const WorkerAnswer answer = worker.ask("alive", patient);
  EXPECT_EQ(answer.reply, "echo alive");
  EXPECT_EQ(answer.doing, "~thinking hard");
}

TEST(Worker, ThatHangsIsKnownByWhatItLastSaid) {
  WorkerProcess worker(child(), {.interim_prefix = "~"});
  const WorkerAnswer answer = worker.ask("alive, then hang", short_limit);
  EXPECT_EQ(answer.outcome, WorkerOutcome::hung);
  EXPECT_EQ(answer.doing, "~thinking hard");
}

TEST(Worker, InheritsTheMemoryThatItShares) {
  SharedMemory memory;
  memory.grow(1);
  memory.bytes().front() = std::byte{'!'};
  WorkerProcess worker(child(), {.shared = memory.descriptor()});
  EXPECT_EQ(worker.ask("shared", patient).reply, "!");
}

TEST(SharedMemory, KeepsWhatItHoldsWhenItGrows) {
  SharedMemory memory;
  memory.grow(100);
  memory.bytes()[99] = std::byte{7};
  memory.grow(std::size_t{5} << 20);
  EXPECT_GE(memory.bytes().size(), std::size_t{5} << 20);
  EXPECT_EQ(memory.bytes()[99], std::byte{7});
}

TEST(SharedMemory, ThatCannotBeHadNamesTheBytesAndTheError) {
  const std::size_t before = open_descriptors();
  try {
    SharedMemory().grow(std::size_t{1} << 55);
    FAIL() << "nothing was thrown";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("allocating 36028797018963968 bytes of the memory shared"));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SharedMemory, PastALimitOfTheProcessNamesTheBytesAndTheError) {
  rlimit whole{};
  getrlimit(RLIMIT_FSIZE, &whole);
  const rlimit small{.rlim_cur = 4096, .rlim_max = whole.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const auto handler = signal(SIGXFSZ, SIG_IGN);  // as attest does
  std::string said;
  try {
    SharedMemory().grow(std::size_t{1} << 20);
  } catch (const ResourceError& error) {
    said = error.what();
  }
  signal(SIGXFSZ, handler);
  setrlimit(RLIMIT_FSIZE, &whole);
  EXPECT_THAT(said, HasSubstr("allocating 1048576 bytes of the memory shared"));
  EXPECT_THAT(said, HasSubstr("File too large"));
}

TEST(Frame, HeaderSaysTheLengthAndNothingElse) {
  EXPECT_EQ(frame_header(0x0102).size(), frame_header_bytes);
  EXPECT_EQ(frame_length(frame_header(0x0102)), 0x0102U);
  EXPECT_THROW(frame_length(frame_header(max_frame_bytes + 1)), FrameError);
  EXPECT_NO_THROW(frame_length(frame_header(max_frame_bytes)));
}

}  // namespace
}  // namespace attest
