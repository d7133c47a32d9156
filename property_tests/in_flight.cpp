#include "property_tests/in_flight.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <vector>

#include "property_tests/in_flight_lines.hpp"

namespace attest {
namespace {

// Fixed storage: the handler may neither allocate nor lock.
struct Line {
  std::atomic<bool> used{false};
  std::atomic<std::size_t> size{0};
  std::array<char, in_flight_line_bytes> text{};
};
std::array<Line, in_flight_lines> lines;
std::byte* mirror = nullptr;  ///< mirrored_bytes that a file shares, or nothing

/// Writes a line's text where a file keeps it.
void reflect(std::size_t slot) {
  if (mirror == nullptr) return;
  const Line& line = lines[slot];
  std::byte* const at = mirror + slot * (in_flight_line_bytes + 1);
  const std::size_t size = line.size.load();
  std::memset(at, 0, in_flight_line_bytes + 1);
  if (size == 0) return;
  std::memcpy(at, line.text.data(), size);
  at[size] = static_cast<std::byte>('\n');
}

/// Where the handlers run when a thread has used up its own stack. Installed for as long as the
/// thread lives, unless it has one already (sanitizers give their own).
class SignalStack {
 public:
  SignalStack() {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    memory_.resize(bytes);
    stack_t own{};
    own.ss_sp = memory_.data();
    own.ss_size = memory_.size();
    ::sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (memory_.empty()) return;
    stack_t off{};
    off.ss_flags = SS_DISABLE;
    ::sigaltstack(&off, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  // A frame with AVX-512 and tile state takes 11 KiB; handlers that fill pages run here too.
  static constexpr std::size_t bytes = 131072;
  std::vector<char> memory_;
};

void give_signal_stack() { thread_local const SignalStack stack; }

constexpr std::array fatal_signals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
std::array<struct sigaction, fatal_signals.size()> previous;

void put(const char* text, std::size_t size) {
  // Nothing can be done about a failing write here.
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text, size);
}

void put(const char* text) { put(text, std::strlen(text)); }

void on_fatal_signal(int signal_number) {
  put("\nattest: killed by a signal while it judged:\n");
  for (const Line& line : lines) {
    const std::size_t size = line.size.load();
    if (size == 0) continue;
    put("  ");
    put(line.text.data(), size);
    put("\n");
  }
  // The faulting instruction runs again, into the handler that was there before.
  for (std::size_t i = 0; i < fatal_signals.size(); ++i) {
    if (fatal_signals[i] == signal_number) ::sigaction(signal_number, &previous[i], nullptr);
  }
  if (signal_number == SIGABRT) ::raise(SIGABRT);
}

}  // namespace

InFlight::InFlight(std::string_view repro) {
  give_signal_stack();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].used.exchange(true)) continue;
    slot_ = static_cast<int>(i);
    break;
  }
  now(repro);
}

void InFlight::now(std::string_view repro) {
  if (slot_ < 0) return;
  Line& line = lines[static_cast<std::size_t>(slot_)];
  const std::size_t size = std::min(repro.size(), line.text.size());
  line.size.store(0);
  std::memcpy(line.text.data(), repro.data(), size);
  line.size.store(size);
  reflect(static_cast<std::size_t>(slot_));
}

InFlight::~InFlight() {
  if (slot_ < 0) return;
  Line& line = lines[static_cast<std::size_t>(slot_)];
  line.size.store(0);
  reflect(static_cast<std::size_t>(slot_));
  line.used.store(false);
}

void mirror_lines(std::byte* to) { mirror = to; }

void print_in_flight_on_fatal_signals() {
  give_signal_stack();
  for (std::size_t i = 0; i < fatal_signals.size(); ++i) {
    struct sigaction action{};
    action.sa_handler = on_fatal_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_ONSTACK;
    ::sigaction(fatal_signals[i], &action, &previous[i]);
  }
}

}  // namespace attest
