#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/worker/worker_errors.hpp"

namespace attest {

/// A backend whose launches happen in a worker process: a crash or a hang is then the verdict of
/// one case. Each thread that launches has a worker of its own, started with its first launch and
/// again after each death.
class IsolatedBackend : public Backend {
 public:
  /// \param inner  known by the same name to the worker.
  /// \param argv   program and arguments of the worker, which ends in worker_main(). Empty: the
  ///               program `attest` in this program's directory, with the argument "worker".
  IsolatedBackend(const Backend& inner, std::vector<std::string> argv,
                  std::chrono::milliseconds limit);

  std::string_view name() const override { return inner_.name(); }
  std::string_view says() const override { return inner_.says(); }
  const Capabilities& capabilities() const override { return inner_.capabilities(); }
  const NumericsProfile& profile() const override { return inner_.profile(); }
  Answer available() const override { return inner_.available(); }
  Answer supports(const Call& call) const override { return inner_.supports(call); }
  /// \throws WorkerCrashed, WorkerHung; BackendError with what the backend itself threw;
  /// ResourceError when a worker cannot be started or has not enough of something.
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

 private:
  const Backend& inner_;
  std::vector<std::string> argv_;
  std::chrono::milliseconds limit_;
};

/// The worker's side: answers launches from the stream socket `fd` until the peer closes it.
/// \returns the process's exit status: 0, or 70 for a peer that does not speak the protocol.
int worker_main(int fd, std::span<const Backend* const> backends);

}  // namespace attest
