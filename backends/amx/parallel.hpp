#pragma once

#include <cstdint>
#include <functional>

#include "backends/amx/kernels.hpp"

namespace attest::amx {

/// Runs body(worker) on `threads` threads with configured tiles, worker = 0 .. threads - 1, and
/// collects what the tiles did. body takes its items from a shared counter, so each item runs once.
KernelOutcome on_tiles(int threads, const std::function<void(int)>& body);

}  // namespace attest::amx
