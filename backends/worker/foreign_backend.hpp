#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/worker/protocol.hpp"

namespace attest {

/// How a kernel of another process is reached.
struct WorkerCommand {
  std::vector<std::string> argv;  ///< the numbers of shared memory and socket are appended
  std::string from;               ///< what errors name: "./libmine.so", "attest_worker.py"
  std::string selector;           ///< what --backend must say; empty: the kernel's name
};

/// Asks one fresh process what it is. \throws BackendError that names `command.from`, also when the
/// process dies or does not answer; ResourceError when it cannot be started.
Description describe_kernel(const WorkerCommand& command);
std::vector<Description> describe_kernels(const WorkerCommand& command);

/// A kernel in another process, over docs/worker_protocol.md: a plugin's library or a framework
/// behind scripts/attest_worker.py. Each thread that launches has a process of its own, which runs
/// many cases and is started again after it died, hung or lost its device; it must then answer a
/// hello, which touches the device, before the next case.
class ForeignBackend final : public Backend {
 public:
  ForeignBackend(WorkerCommand command, Description kernel);

  std::string_view name() const override { return kernel_.name; }
  std::string_view says() const override { return kernel_.says; }
  const Capabilities& capabilities() const override { return kernel_.capabilities; }
  const NumericsProfile& profile() const override { return kernel_.profile; }
  /// What the description says; where that is yes, a process is started once that must import the
  /// kernel and touch its device.
  Answer available() const override;
  Answer supports(const Call& call) const override;
  int device_count() const override { return kernel_.devices; }
  Answer has_device(int device) const override;
  std::string_view only_when_named() const override { return kernel_.only_when_named; }
  std::string_view selector() const override {
    return command_.selector.empty() ? name() : command_.selector;
  }
  bool has_own_process() const override { return true; }
  /// \throws WorkerCrashed, WorkerHung; BackendError for what the worker says failed; ResourceError
  /// when a process cannot be started, or none answers any more.
  RunResult run(const Call& call, const TensorSource& source,
                const RunOptions& options) const override;

 private:
  class Link;
  struct Checked;
  Link& link_of_this_thread() const;

  WorkerCommand command_;
  Description kernel_;
  std::shared_ptr<Checked> checked_;
};

}  // namespace attest
