#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// KV lengths of unified: seqused_k and max_seqlen_k.
std::span<const Rule> seqused_k_rules();

}  // namespace attest
