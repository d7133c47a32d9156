#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// KV lengths and addresses of mla_decode: kv_indptr, kv_indices, kv_last_page_lens.
std::span<const Rule> kv_indptr_rules();

}  // namespace attest
