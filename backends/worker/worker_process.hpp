#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "backends/worker/spawn.hpp"

namespace attest {

/// What came of one request.
enum class WorkerOutcome {
  reply,
  crashed,  ///< the process died, closed its socket or broke the protocol; it is gone now
  hung,     ///< no whole reply within the limit; it was killed
};

struct WorkerAnswer {
  WorkerOutcome outcome = WorkerOutcome::reply;
  std::string reply;
  /// Of a crash: "signal 11 (Segmentation fault)", "exit status 3", "broke the protocol: ...". Of a
  /// hang: "no reply within 500 ms".
  std::string how;
  std::string last_words;  ///< the end of what it wrote to stdout and stderr, at most 16 KiB
  std::string doing;       ///< the last interim frame of this request; empty = none
  std::chrono::milliseconds silent{0};  ///< since that frame
};

/// What else a process is given, and what it may send.
struct WorkerExtras {
  int shared = -1;             ///< descriptor it inherits (worker/spawn.hpp); -1: none
  std::string interim_prefix;  ///< frames that start so are no replies; empty: every frame is one
};

/// A process that answers one request at a time, so that code which may crash or hang takes only
/// itself down. Transport only: requests and replies are opaque bytes (worker/frame.hpp).
///
/// The process starts with the first request and is started again after a crash or a hang. It dies
/// with this object, and with the *thread* that started it (PR_SET_PDEATHSIG), so keep both on one
/// thread. Not for use by two threads at once. Throws only where the harness's own machine fails.
class WorkerProcess {
 public:
  /// `argv`: program and arguments; the number of the socket is appended (worker/spawn.hpp).
  /// `extras.shared` must stay open as long as this object.
  explicit WorkerProcess(std::vector<std::string> argv, WorkerExtras extras = {});
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  /// Sends `request` and waits for the reply, both within `limit`.
  /// \throws ResourceError when the process cannot be started; FrameError for a request above
  /// max_frame_bytes.
  WorkerAnswer ask(std::string_view request, std::chrono::milliseconds limit);

  /// Kills the process and whatever it started, and reaps it. The next ask() starts another.
  void stop();

  /// Of the running process, or -1.
  pid_t pid() const { return child_.pid; }
  /// How often a process was started.
  int starts() const { return starts_; }

 private:
  enum class Step { more, done, closed };
  struct Exchange;
  void ensure_started();
  Step advance(Exchange& exchange, int timeout_ms);
  WorkerAnswer answer(const Exchange& exchange, WorkerOutcome outcome, std::string how) const;
  std::string how_it_ended();
  void read_output();

  std::vector<std::string> argv_;
  WorkerExtras extras_;
  Child child_;
  int starts_ = 0;
  std::string last_words_;
};

}  // namespace attest
