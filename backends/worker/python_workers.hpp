#pragma once

#include <span>
#include <string>

#include "backends/worker/foreign_backend.hpp"

namespace attest {

/// The kernels behind scripts/attest_worker.py, and why there are none where it cannot be asked: no
/// Python, no script.
struct PythonWorkers {
  std::span<const ForeignBackend> backends;
  std::string why_none;
};

/// Asked once, on first use. ATTEST_WORKER names the script (default: scripts/attest_worker.py of
/// the tree this program was built in, or share/attest/scripts of its prefix), ATTEST_PYTHON the
/// interpreter (default: python3).
const PythonWorkers& python_workers();

}  // namespace attest
