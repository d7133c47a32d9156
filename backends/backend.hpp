#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "contracts/call.hpp"
#include "contracts/capabilities.hpp"
#include "contracts/numerics_profile.hpp"
#include "contracts/output.hpp"
#include "memory/stray_read.hpp"
#include "memory/tensor_source.hpp"

namespace attest {

/// The machine failed (a HIP call, an allocation, a worker): names the call, its arguments, the
/// error.
class BackendError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How to run one call. Everything has a default; a backend ignores what it has no notion of.
struct RunOptions {
  int sentinel = 0;          ///< variant of the output sentinel, 0 or 1
  std::string form;          ///< forced kernel form ("2d", "3d"); empty = the backend chooses
  int kv_splits = 0;         ///< forced split count; 0 = the backend chooses
  int threads = 0;           ///< 0 = the backend chooses
  std::string thread_order;  ///< host engines: "forward", "reverse", "random:SEED"
  int device = 0;
  /// How a captured graph replays the call (Capabilities::graphs): "same", "short" or "long", what
  /// it was captured with, then ",eager", another call in between, and ",inside", lengths made by
  /// the graph (docs/hip.md); empty = no graph.
  std::string graph;
  /// Of one launch, for backends with a process of their own.
  std::chrono::milliseconds time_limit{60'000};
  bool operator==(const RunOptions&) const = default;
};

/// What one run left behind.
struct RunResult {
  Output out;
  /// Set when the kernel refused the call with an error of its own; out is then meaningless.
  std::optional<std::string> raised;
  std::string form;    ///< the form that ran: "2d", "split 8"
  std::string engine;  ///< "cpu", "native", "gfx950 (rocjitsu 0.3, emulated)"
  std::map<std::string, std::int64_t> counters;  ///< "kv_bytes", "tile_loads", ...
  std::vector<std::string> lints;                ///< suspicious but not wrong
  std::vector<StrayRead> stray_reads;            ///< of poison in K and V, where the memory notices
  std::vector<std::string>
      damage;  ///< bytes changed outside the declared output: guards, pool, inputs
};

/// One implementation under test. Knows the contract; never the reference. Stateless between runs
/// as far as callers can see; run() may be called from several threads.
class Backend {
 public:
  virtual ~Backend() = default;
  /// "<impl>.<signature>@<engine>", lower case: "scalar.unified@cpu".
  virtual std::string_view name() const = 0;
  virtual std::string_view says() const = 0;  ///< one line for `attest doctor`
  virtual const Capabilities& capabilities() const = 0;
  virtual const NumericsProfile& profile() const = 0;
  virtual Answer available() const = 0;                 ///< can this machine run it?
  virtual Answer supports(const Call& call) const = 0;  ///< does it claim this call?
  /// How many devices RunOptions::device can choose from, by index; the CPU is one.
  virtual int device_count() const { return 1; }
  /// Whether RunOptions::device may be `device`, else why not.
  virtual Answer has_device(int device) const {
    if (device == 0) return {};
    return Answer::no("it runs on the CPU, device 0; there is no device " + std::to_string(device));
  }
  /// Why a run that names no engine leaves it out, where another engine of the same kernel stands
  /// for it on this machine; empty = it does not.
  virtual std::string_view only_when_named() const { return ""; }
  /// What --backend must say to get this one: a plugin goes by its file.
  virtual std::string_view selector() const { return name(); }
  /// Whether its launches happen in a process of its own, within RunOptions::time_limit: the judge
  /// then needs no worker for it.
  virtual bool has_own_process() const { return false; }
  /// \throws BackendError; a kernel's own refusal is RunResult::raised.
  virtual RunResult run(const Call& call, const TensorSource& source,
                        const RunOptions& options) const = 0;
};

/// The parts of "<impl>.<signature>@<engine>".
/// \throws std::invalid_argument for a name that does not have them.
struct BackendName {
  std::string implementation, signature, engine;
};
BackendName split_backend_name(std::string_view name);

}  // namespace attest
