#include "backends/worker/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "contracts/resource_error.hpp"

namespace attest {
namespace {

constexpr int child_socket = 3;
constexpr int child_status = 4;
constexpr int child_shared = 5;

[[noreturn]] void fail(const std::string& step, const std::string& program, int error) {
  throw ResourceError(error, "cannot start worker " + program + ": " + step);
}

struct Pair {
  Descriptor parent, child;
};

Pair socket_pair(const std::string& program) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    fail("socketpair", program, errno);
  }
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

Pair pipe_pair(const std::string& program) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) fail("pipe2", program, errno);
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// What runs between fork and exec: async-signal-safe calls only, for the parent may have threads.
struct ChildPlan {
  pid_t parent = -1;
  int socket = -1, output = -1, status = -1, shared = -1;
  char* const* argv = nullptr;

  [[noreturn]] void run() const {
    // Our ends are moved above the numbers they are wanted at first, so that none is overwritten.
    const int high_socket = fcntl(socket, F_DUPFD_CLOEXEC, 10);
    const int high_output = fcntl(output, F_DUPFD_CLOEXEC, 10);
    const int high_status = fcntl(status, F_DUPFD_CLOEXEC, 10);
    const int high_shared = shared >= 0 ? fcntl(shared, F_DUPFD_CLOEXEC, 10) : -1;
    const int nothing = open("/dev/null", O_RDONLY);
    const bool moved = dup2(nothing, STDIN_FILENO) >= 0 && dup2(high_output, STDOUT_FILENO) >= 0 &&
                       dup2(high_output, STDERR_FILENO) >= 0 &&
                       dup2(high_socket, child_socket) >= 0 &&
                       dup3(high_status, child_status, O_CLOEXEC) >= 0 &&
                       (shared < 0 || dup2(high_shared, child_shared) >= 0);
    if (!moved) give_up(high_status);
    close_range(shared < 0 ? child_shared : child_shared + 1, ~0U, CLOSE_RANGE_CLOEXEC);

    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // it died before the line above
    execvp(argv[0], argv);
    give_up(child_status);
  }

  [[noreturn]] static void give_up(int status_fd) {
    const int error = errno;
    const ssize_t ignored = write(status_fd, &error, sizeof error);
    _exit(ignored == sizeof error ? 127 : 126);
  }
};

/// errno of a failed exec, or 0 once it succeeded (the close-on-exec end is then closed).
int exec_error(int status) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = read(status, &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

}  // namespace

Child spawn(const std::vector<std::string>& argv, int shared) {
  if (argv.empty()) throw std::invalid_argument("cannot start worker: no program given");
  std::vector<std::string> words = argv;
  if (shared >= 0) words.push_back(std::to_string(child_shared));
  words.push_back(std::to_string(child_socket));
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  Pair socket = socket_pair(argv[0]);
  Pair output = pipe_pair(argv[0]);
  Pair status = pipe_pair(argv[0]);
  const ChildPlan plan{.parent = getpid(),
                       .socket = socket.child.get(),
                       .output = output.child.get(),
                       .status = status.child.get(),
                       .shared = shared,
                       .argv = pointers.data()};
  const pid_t pid = fork();
  if (pid < 0) fail("fork", argv[0], errno);
  if (pid == 0) plan.run();

  status.child.close();
  if (const int error = exec_error(status.parent.get())) {
    int ignored = 0;
    while (waitpid(pid, &ignored, 0) < 0 && errno == EINTR) {
    }
    fail("exec", argv[0], error);
  }
  set_nonblocking(socket.parent.get());
  set_nonblocking(output.parent.get());
  return {pid, std::move(socket.parent), std::move(output.parent)};
}

}  // namespace attest
