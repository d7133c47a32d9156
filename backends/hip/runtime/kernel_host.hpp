#pragma once

// Device words on the host: every thread of a block is a fiber of the host engine, and a function
// that another lane must answer switches to the next fiber. Only kernel sources include this.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "backends/hip/runtime/host_engine.hpp"
#include "backends/hip/runtime/host_graph.hpp"
#include "backends/hip/runtime/host_thread.hpp"
#include "backends/hip/runtime/host_wave.hpp"
#include "backends/hip/runtime/launch_types.hpp"
#include "backends/hip/runtime/qualifiers.hpp"

// The call's own place tells one barrier from another: two on one line differ by column. Return
// addresses would not do, since a compiler duplicates and merges calls.
// HIP chose these names, so that they are reserved is no finding.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreserved-identifier"
#endif
// NOLINTBEGIN(readability-identifier-naming): HIP chose these names.
inline void __syncthreads(std::source_location site = std::source_location::current()) {
  attest::hip::host::wait_at_barrier(site);
}
template <class T>
T __shfl(T value, int lane, int width = 0,
         std::source_location site = std::source_location::current()) {
  return attest::hip::host::shuffle(attest::hip::host::Shuffle::from, value, lane, width, site);
}
template <class T>
T __shfl_xor(T value, int mask, int width = 0,
             std::source_location site = std::source_location::current()) {
  return attest::hip::host::shuffle(attest::hip::host::Shuffle::exclusive_or, value, mask, width,
                                    site);
}
template <class T>
T __shfl_down(T value, unsigned delta, int width = 0,
              std::source_location site = std::source_location::current()) {
  return attest::hip::host::shuffle(attest::hip::host::Shuffle::down, value,
                                    static_cast<int>(delta), width, site);
}
template <class T>
T __shfl_up(T value, unsigned delta, int width = 0,
            std::source_location site = std::source_location::current()) {
  return attest::hip::host::shuffle(attest::hip::host::Shuffle::up, value, static_cast<int>(delta),
                                    width, site);
}
inline std::uint64_t __ballot(int predicate,
                              std::source_location site = std::source_location::current()) {
  return attest::hip::host::vote("__ballot", predicate, site).yes;
}
inline int __any(int predicate, std::source_location site = std::source_location::current()) {
  return attest::hip::host::vote("__any", predicate, site).yes != 0 ? 1 : 0;
}
inline int __all(int predicate, std::source_location site = std::source_location::current()) {
  const attest::hip::host::Votes votes = attest::hip::host::vote("__all", predicate, site);
  return votes.yes == votes.present ? 1 : 0;
}
// NOLINTEND(readability-identifier-naming)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

namespace attest::hip::inline on_host {

inline int wave_size() { return static_cast<int>(host::current_thread.wave_size); }

inline void sync_wave(std::source_location site = std::source_location::current()) {
  host::vote("sync_wave", 1, site);
}

inline float exp2_of(float x) { return std::exp2(x); }

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(host::current_thread.shared);
}

/// Runs the whole grid and returns, or leaves it to a graph where the stream is captured. \throws
/// host::KernelFault, or what the kernel threw with its place in front.
template <class Args>
void launch(Kernel<Args> kernel, Extent grid, Extent block, std::size_t shared_bytes, Stream stream,
            const std::type_identity_t<Args>& args) {
  if (host::HostGraph* const graph = host::recording(stream)) {
    graph->add([kernel, grid, block, shared_bytes, args](Stream replayed) {
      launch(kernel, grid, block, shared_bytes, replayed, args);
    });
    return;
  }
  struct Bound {
    void (*entry)(Args);
    const Args* args;
  };
  const Bound bound{kernel.entry, &args};
  const auto run = [](const void* self) {
    const auto* call = static_cast<const Bound*>(self);
    call->entry(*call->args);
  };
  host::run_grid({kernel.name, grid, block, shared_bytes, run, &bound}, stream);
}

}  // namespace attest::hip::inline on_host
