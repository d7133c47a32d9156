#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "backends/hip/runtime/launch_types.hpp"

namespace attest::hip::host {

/// In which order the threads of a block (and the blocks) run between two barriers. A kernel
/// without a race gives the same bits in all of them.
struct ThreadOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;  ///< of random
  bool operator==(const ThreadOrder&) const = default;
};
/// "forward", "reverse", "random:SEED"; empty is forward. \throws std::invalid_argument.
ThreadOrder thread_order(std::string_view text);

class HostGraph;  // host_graph.hpp

/// How the host runs launches of a stream.
struct HostSettings {
  unsigned wave_size = 32;  ///< 32 or 64
  ThreadOrder order;
  int threads = 0;  ///< operating system threads that share the blocks; 0 = as many as cores
  /// Threads may return while others of their block still have barriers to come. AMD counts living
  /// waves only, CUDA promises nothing: off.
  bool early_exit = false;
  /// A wave operation may be reached by some of the living lanes only, as under AMD's exec mask.
  /// CUDA's mapping names the whole warp: off.
  bool partial_waves = false;
  /// Launches are captured there, not run.
  HostGraph* recording = nullptr;
};

/// The stream whose launches run with `settings`, which must outlive them.
inline Stream host_stream(const HostSettings& settings) {
  return {const_cast<HostSettings*>(&settings)};  // NOLINT: launches only read it
}

/// A kernel broke a rule of kernel.hpp. The text names the kernel, the block, the threads and the
/// lines: "attest::hip::split<128>, block (3,0,0): thread (5,0,0) waits at __syncthreads,
/// split.hpp:81, but thread (0,0,0) has returned".
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Launch {
  std::string_view kernel;
  Extent grid;
  Extent block;  ///< at most 1024 threads
  std::size_t shared_bytes = 0;
  void (*run)(const void* self) = nullptr;  ///< one thread's work
  const void* self = nullptr;
};

/// Runs every thread of every block and returns. Shared memory of each block starts as NaN, in
/// every format but e4m3fnuz. \throws KernelFault; the launch stops at the first fault.
/// Several threads may launch at once.
void run_grid(const Launch& launch, Stream stream);

}  // namespace attest::hip::host
