#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attest {

/// The machine a result was made on, as far as results depend on it.
struct Machine {
  std::string system;  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0 x86_64"
  std::string cpu;     ///< model name
  std::vector<std::string>
      flags;               ///< instruction sets that matter here: avx2, avx512f, amx_tile, ...
  std::int64_t cores = 0;  ///< this process may use
  std::int64_t cores_online = 0;
  std::int64_t memory_bytes = 0;     ///< the smaller of the machine's and the control group's limit
  std::string sched_limit;           ///< CPU quota of the control group in words; empty = none
  std::vector<std::string> devices;  ///< accelerators the kernel driver shows: "NVIDIA H200", "kfd"
};

/// Reads /proc, /sys and uname; whatever cannot be read stays empty. Never throws but bad_alloc.
Machine this_machine();

/// One JSON object with the fields above.
std::string machine_json(const Machine& machine);
/// Lines for people, each indented by two spaces.
std::string machine_text(const Machine& machine);

}  // namespace attest
