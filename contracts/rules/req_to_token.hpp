#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Key addresses of extend and decode: req_pool_indices and req_to_token.
std::span<const Rule> req_to_token_rules();

}  // namespace attest
