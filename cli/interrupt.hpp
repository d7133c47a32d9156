#pragma once

#include <atomic>

namespace attest {

/// Becomes true on the first SIGINT, SIGTERM or SIGHUP; the second one leaves at once with exit
/// code 130. Installs the handlers on the first call.
const std::atomic<bool>& interrupted();

}  // namespace attest
