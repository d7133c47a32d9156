#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// cu_seqlens_q / qo_indptr and max_seqlen_q of unified and mla_decode; MLA's one draft length.
std::span<const Rule> query_offsets_rules();

}  // namespace attest
