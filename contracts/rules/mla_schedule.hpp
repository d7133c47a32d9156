#pragma once

#include <span>

#include "contracts/rule.hpp"

namespace attest {

/// How mla_decode's work is split: the split count and the work lists of the persistent kernels.
std::span<const Rule> mla_schedule_rules();

}  // namespace attest
