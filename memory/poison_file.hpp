#pragma once

#include <cstdint>
#include <string>

#include "contracts/dtype.hpp"
#include "memory/poison.hpp"

namespace attest {

/// Descriptor of a memory file of `bytes` bytes of poison. Kept open and shared by all pools of the
/// process, so only the first of a kind pays for the filling. \throws std::system_error
int poison_file(Dtype dtype, Poison poison, Region region, std::int64_t bytes);

/// Throws std::system_error for errno: "sparse KV pool: <what>: ENOMEM (<the limit behind it>)".
[[noreturn]] void fail_pool(const std::string& what);

}  // namespace attest
