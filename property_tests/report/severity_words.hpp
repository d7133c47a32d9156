#pragma once

#include <string_view>

#include "contracts/rule.hpp"

namespace attest {

/// What becomes of a call that breaks a rule of this severity: "silently different numbers; rejects
/// the call".
std::string_view consequence(Severity severity);

}  // namespace attest
