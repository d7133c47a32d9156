#include "cli/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  return ends;
}

[[noreturn]] void become(std::vector<std::string> argv,
                         const std::map<std::string, std::string>& environment, int in, int out,
                         int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  // What killed runs left behind is of other tests, unless one asks for it.
  ::setenv("TMPDIR", "/nonexistent", 1);
  for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
  if (::chdir(ATTEST_SOURCE_DIR) != 0) ::_exit(126);
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  ::_exit(127);
}

/// Takes what is there; false at the end.
bool take(int fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t size = ::read(fd, buffer.data(), buffer.size());
  if (size <= 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

}  // namespace

Subprocess::Subprocess(std::vector<std::string> argv,
                       const std::map<std::string, std::string>& environment,
                       const std::string& input) {
  const auto in = make_pipe();
  const auto out = make_pipe();
  const auto err = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) become(std::move(argv), environment, in[0], out[1], err[1]);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
  // Inputs of tests fit into a pipe.
  if (!input.empty() && ::write(in[1], input.data(), input.size()) < 0) {
    throw std::runtime_error("write");
  }
  ::close(in[1]);
}

Subprocess::~Subprocess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(out_);
  ::close(err_);
}

void Subprocess::send(int signal) const { ::kill(pid_, signal); }

Finished Subprocess::finish() {
  Finished finished;
  std::array<pollfd, 2> fds = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (Clock::now() > deadline) {
      send(SIGKILL);
      break;
    }
    if (::poll(fds.data(), fds.size(), 1000) <= 0) continue;
    if (fds[0].revents != 0 && !take(out_, finished.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !take(err_, finished.err)) fds[1].fd = -1;
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

Finished attest_cli(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment,
                    const std::string& input) {
  std::vector<std::string> argv = {ATTEST_BINARY};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Subprocess(argv, environment, input).finish();
}

}  // namespace attest
