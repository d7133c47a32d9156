#pragma once

#include <cstdint>

#include "contracts/call.hpp"

namespace attest {

/// What the real extend kernel checks before it starts. \throws KernelRefusal
void check_extend_arguments(const ExtendCall& call);

/// Query rows of one block of the extend kernel, by the longest request of the batch.
/// Source: sglang sgl-kernel/csrc/cpu/extend.cpp, the dispatch on max_len_extend.
std::int64_t extend_block(std::int64_t max_len_extend);

}  // namespace attest
