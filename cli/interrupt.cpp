#include "cli/interrupt.hpp"

#include <unistd.h>

#include <csignal>

#include "contracts/verdict.hpp"

namespace attest {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  if (flag.exchange(true)) ::_exit(exit_interrupted);
}

}  // namespace

const std::atomic<bool>& interrupted() {
  static const bool installed = [] {
    struct sigaction action{};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    // No SA_RESTART: a read of standard input must end too.
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
    // A closed terminal; but nohup asked to outlive it.
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
    return true;
  }();
  static_cast<void>(installed);
  return flag;
}

}  // namespace attest
