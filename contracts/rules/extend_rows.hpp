#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// Which rows of q a request of extend has: extend_seq_lens, extend_start_loc, max_len_extend.
std::span<const Rule> extend_rows_rules();

}  // namespace attest
