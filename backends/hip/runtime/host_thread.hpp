#pragma once

#include <cstddef>

namespace attest::hip::host {

struct Index {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

/// What the running fiber may ask without another lane. The engine writes it at each switch.
struct CurrentThread {
  unsigned wave_size = 32;
  std::byte* shared = nullptr;
};

// Initial-exec: one addition to a register, and the engine is never in a library opened at run
// time.
[[gnu::tls_model("initial-exec")]] constinit inline thread_local CurrentThread current_thread;

}  // namespace attest::hip::host

// NOLINTBEGIN(readability-identifier-naming): HIP chose these names.
[[gnu::tls_model("initial-exec")]] constinit inline thread_local attest::hip::host::Index threadIdx;
[[gnu::tls_model("initial-exec")]] constinit inline thread_local attest::hip::host::Index blockIdx;
[[gnu::tls_model("initial-exec")]] constinit inline thread_local attest::hip::host::Index blockDim;
[[gnu::tls_model("initial-exec")]] constinit inline thread_local attest::hip::host::Index gridDim;
// NOLINTEND(readability-identifier-naming)
