#pragma once

#include <string_view>

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

}  // namespace attest
