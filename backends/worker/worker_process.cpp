#include "backends/worker/worker_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "backends/worker/frame.hpp"
#include "contracts/resource_error.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t last_words_bytes = 16384;
/// How long a process that closed its socket may take to exit by itself.
constexpr std::chrono::milliseconds exit_grace{1000};

/// Whether the process has ended. It stays a zombie, so that its number is still its own.
bool ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

/// Kills the process's group (it may have children of its own) and reaps it. \returns its status.
int end(pid_t pid) {
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Whether the socket holds bytes, or its end, that no request asked for.
bool spoke_unasked(int socket) {
  char byte = 0;
  return recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  }
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

/// Milliseconds left, rounded up, for poll().
int left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
}

}  // namespace

/// One request on its way out and its reply on its way in.
struct WorkerProcess::Exchange {
  std::string out;
  std::size_t sent = 0;
  std::string in;  ///< header and payload so far
  std::size_t wanted = frame_header_bytes;
  std::string doing;  ///< the last interim frame, and when it came
  Clock::time_point heard;

  /// Whether the frame that just came is none of the caller's. Makes room for the next.
  bool interim(std::string_view prefix) {
    std::string frame = reply();
    if (prefix.empty() || !frame.starts_with(prefix)) return false;
    doing = std::move(frame);
    heard = Clock::now();
    in.clear();
    wanted = frame_header_bytes;
    return true;
  }
  bool sending() const { return sent < out.size(); }
  std::string reply() const { return in.substr(frame_header_bytes); }

  Step send_some(int fd) {
    const ssize_t n = ::send(fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<std::size_t>(n);
      return Step::more;
    }
    return errno == EAGAIN || errno == EINTR ? Step::more : Step::closed;
  }

  /// \throws FrameError for a header that is none of ours.
  Step receive_some(int fd) {
    std::array<char, 65536> chunk;
    const std::size_t room = std::min(chunk.size(), wanted - in.size());
    const ssize_t n = recv(fd, chunk.data(), room, 0);
    if (n == 0) return Step::closed;
    if (n < 0) return errno == EAGAIN || errno == EINTR ? Step::more : Step::closed;
    in.append(chunk.data(), static_cast<std::size_t>(n));
    if (in.size() == frame_header_bytes && wanted == frame_header_bytes) {
      wanted += frame_length(in);
    }
    return in.size() == wanted ? Step::done : Step::more;
  }
};

WorkerProcess::WorkerProcess(std::vector<std::string> argv, WorkerExtras extras)
    : argv_(std::move(argv)), extras_(std::move(extras)) {}

WorkerProcess::~WorkerProcess() { stop(); }

void WorkerProcess::stop() {
  if (child_.pid < 0) return;
  end(child_.pid);
  child_ = {};
}

void WorkerProcess::ensure_started() {
  if (child_.pid >= 0) {
    if (!ended(child_.pid) && !spoke_unasked(child_.socket.get())) return;
    stop();  // it ended or went astray between requests: no case is to blame
  }
  last_words_.clear();
  child_ = spawn(argv_, extras_.shared);
  ++starts_;
}

void WorkerProcess::read_output() {
  std::array<char, 65536> chunk;
  while (child_.output.is_open()) {
    const ssize_t n = read(child_.output.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) {
      child_.output.close();
      return;
    }
    last_words_.append(chunk.data(), static_cast<std::size_t>(n));
    if (last_words_.size() > last_words_bytes) {
      last_words_.erase(0, last_words_.size() - last_words_bytes);
    }
  }
}

/// Waits a moment for a process that closed its socket: its own exit says more than our SIGKILL.
std::string WorkerProcess::how_it_ended() {
  const auto deadline = Clock::now() + exit_grace;
  while (!ended(child_.pid)) {
    if (Clock::now() >= deadline) {
      stop();
      return "closed its socket and went on running";
    }
    poll(nullptr, 0, 1);
    read_output();
  }
  read_output();
  const int status = end(child_.pid);
  child_ = {};
  return describe_status(status);
}

WorkerAnswer WorkerProcess::answer(const Exchange& exchange, WorkerOutcome outcome,
                                   std::string how) const {
  WorkerAnswer answer{.outcome = outcome,
                      .reply = outcome == WorkerOutcome::reply ? exchange.reply() : std::string(),
                      .how = std::move(how),
                      .last_words = last_words_,
                      .doing = exchange.doing};
  if (!exchange.doing.empty()) {
    answer.silent =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - exchange.heard);
  }
  return answer;
}

/// Waits for either descriptor and moves whatever can be moved.
WorkerProcess::Step WorkerProcess::advance(Exchange& exchange, int timeout_ms) {
  const short events = exchange.sending() ? POLLIN | POLLOUT : POLLIN;
  std::array<pollfd, 2> fds = {pollfd{child_.socket.get(), events, 0},
                               pollfd{child_.output.get(), POLLIN, 0}};
  const int ready = poll(fds.data(), fds.size(), timeout_ms);
  if (ready < 0 && errno != EINTR) throw ResourceError(errno, "poll of a worker");
  if (ready <= 0) return Step::more;
  if (fds[1].revents != 0) read_output();
  if ((fds[0].revents & POLLOUT) != 0) {
    const Step step = exchange.send_some(fds[0].fd);
    if (step != Step::more) return step;
  }
  const bool readable = (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  return readable ? exchange.receive_some(fds[0].fd) : Step::more;
}

WorkerAnswer WorkerProcess::ask(std::string_view request, std::chrono::milliseconds limit) {
  if (request.size() > max_frame_bytes) {
    throw FrameError("request of " + std::to_string(request.size()) + " bytes, the limit is " +
                     std::to_string(max_frame_bytes));
  }
  ensure_started();
  const auto deadline = Clock::now() + limit;
  Exchange exchange;
  exchange.out = frame_header(request.size()) + std::string(request);
  auto step = Step::more;
  while (step == Step::more && Clock::now() < deadline) {
    try {
      step = advance(exchange, left_until(deadline));
      if (step == Step::done && exchange.interim(extras_.interim_prefix)) step = Step::more;
    } catch (const FrameError& error) {
      read_output();
      stop();
      return answer(exchange, WorkerOutcome::crashed,
                    std::string("broke the protocol: ") + error.what());
    }
  }
  if (step == Step::closed) {
    const std::string how = how_it_ended();
    return answer(exchange, WorkerOutcome::crashed,
                  exchange.in.empty() ? how : how + " in the middle of a reply");
  }
  read_output();
  if (step == Step::done) {
    return answer(exchange, WorkerOutcome::reply, "");
  }
  stop();
  return answer(exchange, WorkerOutcome::hung,
                "no reply within " + std::to_string(limit.count()) + " ms");
}

}  // namespace attest
