#pragma once

#include <stdexcept>
#include <string_view>

#include "backends/amx/emulation/engine.hpp"
#include "contracts/capabilities.hpp"

namespace attest::amx {

/// The engine of this process where none is named: what ATTEST_AMX says, else native where it is
/// possible, else patch. The first call may ask the kernel for tile permission.
const Choice& process_engine();

/// Whether this machine runs `engine`, in this process or in a worker, and ATTEST_AMX lets it.
Answer possible(Engine engine);

/// "tiles of the CPU", "tiles emulated, instructions patched".
std::string_view how(Engine engine);

/// The process cannot run the engine any more, or never could.
class EngineUnavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Holds the process on one engine during a launch. Emulated engines take turns: a lease waits
/// until the launches of the other one are over.
class EngineLease {
 public:
  /// \throws EngineUnavailable, std::system_error
  explicit EngineLease(Engine engine);
  ~EngineLease();
  EngineLease(const EngineLease&) = delete;
  EngineLease& operator=(const EngineLease&) = delete;
};

}  // namespace attest::amx
