#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// The work lists of AITER's persistent MLA kernels: every key of every row once, every partial
/// result merged once, made for this launch.
std::span<const Rule> work_list_rules();

}  // namespace attest
