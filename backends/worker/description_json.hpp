#pragma once

#include <string>
#include <string_view>

#include "backends/worker/protocol.hpp"

namespace attest {

/// A kernel's description of itself, as a worker's hello and a plugin give it:
/// {"name", "says", "version", "available", "reason", "capabilities": {...}, "profile": {...}}
/// (docs/worker_protocol.md). Features that are not claimed are off; the profile's members are
/// those of docs/profiles.md, what is left out is the default.
/// \throws BackendError "<from>: /capabilities/q_dtypes/0: ..."
Description read_description(std::string_view json, const std::string& from);

}  // namespace attest
