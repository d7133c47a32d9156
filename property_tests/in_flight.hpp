#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The reproduction lines of the cases being run right now, one per thread. When an unexpected
/// signal kills the process (a kernel that runs inside it wrote through a wild pointer), the lines
/// are printed first: a fault takes the process, not the evidence.
class InFlight {
 public:
  explicit InFlight(std::string_view repro);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  /// Replaces this thread's line.
  void now(std::string_view repro);

 private:
  int slot_ = -1;
};

/// Prints the lines to standard error on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT, then lets the
/// handlers that were there before have the signal. Call once, before threads start.
void print_in_flight_on_fatal_signals();

/// Keeps the lines in a file in `folder` as well (memory shared with it: no system call per case),
/// which outlives a process that no handler saves: SIGKILL, the OOM killer. Makes the folder, for
/// this user alone. Does nothing where that cannot be had: no run fails for want of it.
/// \returns the lines of earlier processes that ended without forget_in_flight(), whose files are
/// then gone. Call once, before threads start.
std::vector<std::string> keep_in_flight_in(const std::filesystem::path& folder);

/// Removes this process's file: it ends, and nothing was left undone.
void forget_in_flight();

}  // namespace attest
