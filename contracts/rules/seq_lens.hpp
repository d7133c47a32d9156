#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// KV lengths of extend and decode: the prefix rule.
std::span<const Rule> seq_lens_rules();

}  // namespace attest
